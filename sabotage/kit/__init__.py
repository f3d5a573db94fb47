"""What every attack uses: injector, evidence, integrity, Stripe's view."""
