"""The vault: a key per secret, ciphertext rows and document files."""
