"""The five injectors, one file each."""
