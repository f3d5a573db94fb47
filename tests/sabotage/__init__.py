"""Tests of the injectors: each is held, and gets through once its defence is taken away."""
