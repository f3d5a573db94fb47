"""Step 4: ask the model for one tool call. Its answer is untrusted bytes."""
