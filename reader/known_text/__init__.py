"""The units of a document that a person accepts once: text, pictures, drawings."""
