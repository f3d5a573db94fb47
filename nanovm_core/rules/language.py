"""Refusals of conditions."""

ROWS = (
    (
        "CON-001",
        "The condition is too long or too deep",
        "A guard that nobody can read guards nothing; and its cost is bounded.",
        "33 opening parentheses.",
    ),
    (
        "CON-002",
        "An unknown character",
        "What is not understood is not dropped: `!$blocked` would become `$blocked`.",
        "`!$blocked`",
    ),
    (
        "CON-003",
        "An unknown word",
        "There are no functions, and a bare word is no text.",
        "`$currency == EUR`",
    ),
    (
        "CON-004",
        "A text is not closed, or holds what cannot be seen",
        "What a person reads must be what is compared.",
        "`$currency == 'EUR`",
    ),
    (
        "CON-005",
        "Not an integer in range",
        "There are no floats and no arithmetic.",
        "`$amount > 1.5`",
    ),
    (
        "CON-006",
        "Not a variable",
        "Names are ASCII, begin with a letter and have no leading underscore.",
        "`$_secret`",
    ),
    (
        "CON-007",
        "A value is expected here",
        "Half a condition is none.",
        "`$amount >`",
    ),
    (
        "CON-008",
        "An operator or the end is expected here",
        "What follows a condition is not ignored.",
        "`$amount == 499 ; import os`",
    ),
    (
        "CON-009",
        "Comparisons do not chain",
        "`1 < $a < 3` means different things in different languages.",
        "`1 < $amount < 3`",
    ),
    (
        "CON-010",
        "A list holds literals of one type",
        "Membership among mixed types has no clear meaning.",
        "`$currency in ['EUR', 5]`",
    ),
    (
        "CON-020",
        "A variable or field is missing",
        "A missing value must not permit.",
        "`$slots.discount > 0`, in a run without that slot.",
    ),
    (
        "CON-021",
        "A value is of no type that conditions know",
        "null, floats and objects compare in surprising ways.",
        "A slot that holds a float.",
    ),
    (
        "CON-022",
        "The types do not fit",
        '`"5" == 5` and `true == 1` are mistakes, not answers.',
        "`$currency == 5`, where it is a text.",
    ),
    (
        "CON-023",
        "Logic takes booleans only",
        "A text or a number is not true.",
        "`$amount and $open`, where `amount` is a number.",
    ),
    (
        "CON-030",
        "No variable has this name here",
        "Known before any run: nothing will ever fill it.",
        "`$slots.ammount_minor`",
    ),
    (
        "CON-031",
        "Equality takes two values of one type",
        "Known before any run: it could only fail.",
        "`$slots.currency == 5`",
    ),
    (
        "CON-032",
        "Order takes two integers",
        "Known before any run: it could only fail.",
        "`$slots.currency < 'USD'`",
    ),
    (
        "CON-033",
        "Logic takes booleans only",
        "Known before any run: it could only fail.",
        "`not $slots.currency`",
    ),
    (
        "CON-034",
        "Membership takes an element and a list of its type, or two texts",
        "Known before any run: it could only fail.",
        "`$slots.amount_minor in ['EUR']`",
    ),
    (
        "CON-035",
        "A condition comes to true or false",
        "A guard that is a number or a text says neither yes nor no.",
        "`$slots.currency`",
    ),
)
