"""The text of a row whose text field is in a list, as docs/developers/definitions.md defines it."""

USER, ASSISTANT = {"user", "human", "prompter"}, {"assistant", "gpt", "model", "chatgpt", "bot"}
SYSTEM, TOOL = {"system", "developer"}, {"tool", "function", "observation"}
NAMES = {"user": USER, "assistant": ASSISTANT, "system": SYSTEM, "tool": TOOL}


def text(row, path, roles=None):
    """Return the text, or None if the row has none."""
    found = _strings(row, path.replace("[]", ".[]").split("."), roles)
    return "\n".join(found) if found else None


def without_repeats(items, key, roles, seen, min_words):
    """Return the items, in whose texts no line comes again that was `seen`; those with other roles are unchanged."""
    return [
        item | {key: without_lines(item[key], seen, min_words)} if item[key] and _counts(item, roles) else item
        for item in items
    ]


def without_lines(text, seen, min_words):
    """Return a text without its lines of at least so many words that were `seen`; add the others to these."""
    left = []
    for line in text.splitlines(keepends=True):
        words = tuple(line.split())
        if len(words) < min_words or words not in seen:
            left.append(line)
        seen.add(words)
    return "".join(left)


def _strings(value, steps, roles, of_list=False):
    if value is None:
        return []
    if not steps:
        return _leaf(value)
    if steps[0] == "[]":
        return [one for item in value for one in _strings(item, steps[1:], roles, "[]" not in steps[1:])]
    if of_list and not _counts(value, roles):
        return []
    return _strings(value.get(steps[0]), steps[1:], roles)


def _leaf(value):
    if isinstance(value, str):
        return [value]
    found = [part.get("text") if isinstance(part, dict) else part for part in value]
    return [part for part in found if part is not None]


def _counts(item, roles):
    own = [item[name] for name in ("role", "from") if isinstance(item.get(name), str)]
    if roles is None:
        return not own or own[0].lower() not in SYSTEM
    return bool(own) and any(own[0].lower() in NAMES.get(name, {name}) for name in roles)
