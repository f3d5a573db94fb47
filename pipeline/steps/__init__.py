"""The seven steps of an invoice, one file or folder each.

1 ``receive`` · 2 ``extract`` · 3 ``vault`` · 4 ``propose`` (the model) · 5 ``authorize`` (decided
in the kernel) · 6 ``charge`` · 7 ``seal``. Beside them: ``work``, what every adapter gets and
gives; ``adapters``, their table; ``reasons``, the codes with which a step can fail.
"""
