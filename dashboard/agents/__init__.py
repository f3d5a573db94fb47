"""The agents of a workspace: listed, each with what it may do, suspended, resumed and killed."""
