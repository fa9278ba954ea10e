"""How evidence names a category: text, short, and apart from a number or truth value that is spelled alike."""

from udfs.sketches.name_sample import short_name
from udfs.statistics.categories import Category


def category_name(category: Category) -> str:
    """Return the category as text that JSON can hold.

    >>> category_name(Category("text", "1")), category_name(Category("number", 1)), category_name(Category("rest", "x"))
    ('1', 'number:1', 'rest:x')
    """
    value = str(category.value)
    return short_name(value) if category.kind == "text" else f"{category.kind}:{value}"
