"""What a worker of the bench of the queue runs: settings, tools and tasks that do nothing."""
