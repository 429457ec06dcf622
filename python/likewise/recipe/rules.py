"""Validation of a recipe's fields: combinations of values, fields that apply to the method, and rules for texts."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from likewise import _native
from likewise.errors import InvalidParameter, RecipeMismatch, check_choice, check_integer
from likewise.recipe.fields import (
    AUTO,
    AUTO_MEASURES,
    FIELDS,
    FIELDS_OF_METHOD,
    METHODS,
    NAMING_TOKENS,
    OWN_WEIGHTS,
    PACKAGE_HASHES,
    TABLE_WEIGHTS,
)
from likewise.recipe.word_lists import WordList, word_list

# What pairs need by the names of their documents.
_NAME_FIELDS = ("siblings", "unsure", "keep_new")


@lru_cache
def keep_criteria(keep: str) -> tuple[tuple[str, str], ...]:
    """Return the criteria of a `keep` value as (rule, field), best first."""
    criteria: list[tuple[str, str]] = []
    for part in keep.split(","):
        rule, _, field = part.strip().partition(":")
        rule = "max" if rule == "newest" else rule
        needs_field = rule in ("max", "min")
        if rule not in ("first", "longest", "shortest", "max", "min") or needs_field != bool(field):
            raise InvalidParameter(
                "keep",
                f"{keep!r} is not first, longest, shortest, max:FIELD, min:FIELD, newest:FIELD, "
                "or a comma-separated list of them",
            )
        if criteria and criteria[-1][0] == "first":
            raise InvalidParameter(
                "keep", f"{keep!r} given; rules after first have no effect, because first leaves no ties"
            )
        criteria.append((rule, field))
    return tuple(criteria)


def fields_read(keep: str, others: Iterable[str]) -> tuple[str, ...]:
    """Return the fields that a run reads from each row: those that `keep` needs, and others."""
    return tuple(dict.fromkeys((*keep_needs(keep)[1], *others)))


@lru_cache
def keep_needs(keep: str) -> tuple[bool, tuple[str, ...]]:
    """Return whether `keep` needs text lengths, and which fields it needs."""
    criteria = keep_criteria(keep)
    fields = tuple(dict.fromkeys(field for _, field in criteria if field))
    return any(rule in ("longest", "shortest") for rule, _ in criteria), fields


def check_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields in their canonical types."""
    checked = dict(fields)
    method = check_choice("method", fields["method"], METHODS)
    used = FIELDS_OF_METHOD[method]
    for one in FIELDS:
        if one.is_checked and fields[one.name] is not None and one.name not in used:
            raise InvalidParameter(one.name, f"{one.name} does not apply to method {method}")
    for one in FIELDS:
        if one.is_required and fields[one.name] is None:
            raise InvalidParameter(one.name, f"{one.name} is not given")
    for one in FIELDS:
        value = checked[one.name]
        if one.check is not None and value is not None and value is not one.original:
            checked[one.name] = one.check(one.name, value)
    keep_criteria(checked["keep"])
    if (checked["measure"] == "equality") != (method == "exact"):
        raise InvalidParameter("measure", "equality applies only to method exact, and exact supports no other measure")
    if checked["weight_scale"] is not None and checked["weights"] != OWN_WEIGHTS:
        raise InvalidParameter("weight_scale", f"applies only to weights {OWN_WEIGHTS}")
    if checked["weights_id"] is not None and checked["weights"] not in TABLE_WEIGHTS:
        raise InvalidParameter("weights_id", f"weights {checked['weights']} do not use a table")
    _CHECK_OF_METHOD[method](checked)
    _check_auto(checked)
    check_hash(checked)
    _check_siblings(checked)
    return checked


def _check_minhash(fields: dict[str, Any]) -> None:
    for name in ("num_slots", "slot_bits", "scheme", "threshold", "recall"):
        if fields[name] is None:
            raise InvalidParameter(name, f"method minhash needs {name}")
    if fields["measure"] == "hamming":
        raise InvalidParameter("measure", "hamming requires SimHash fingerprints; use method simhash")
    slots, bands, rows = fields["num_slots"], fields["bands"], fields["rows"]
    if fields["overflow"] is None:
        # A recipe of levels leaves the field out.
        fields["overflow"] = "levels"
    if bands is None and rows is None:
        return
    if rows is None:
        rows = slots // bands
    if bands is None:
        bands = slots // rows
    if bands < 1 or rows < 1 or bands * rows > slots:
        raise InvalidParameter("bands", f"{bands} bands of {rows} rows need {bands * rows} slots; num_slots is {slots}")
    fields["bands"], fields["rows"] = bands, rows


def _check_simhash(fields: dict[str, Any]) -> None:
    if fields["bits"] is None:
        raise InvalidParameter("bits", "method simhash needs bits")
    bits, within, measure = fields["bits"], fields["within"], fields["measure"]
    if within is not None and within > bits:
        raise InvalidParameter("within", f"{within} is not from 0 to bits ({bits})")
    if measure == "hamming":
        if fields["threshold"] is not None:
            raise InvalidParameter("threshold", "a threshold does not apply to measure hamming; use within")
        if within is None:
            raise InvalidParameter("within", "a Hamming-only recipe needs within")
        if fields["short_margin"] is not None:
            raise InvalidParameter("short_margin", "does not apply to measure hamming; use short_threshold")
        if fields["recall"] is not None:
            raise InvalidParameter("recall", "does not apply to measure hamming, which finds every pair; remove recall")
        if fields["short_threshold"] is None:
            fields["short_threshold"] = 0.8
        return
    if fields["threshold"] is None:
        raise InvalidParameter("threshold", f"measure {measure} needs a threshold")
    if fields["short_threshold"] is not None:
        raise InvalidParameter("short_threshold", "applies only to Hamming-only recipes; this recipe has a threshold")
    if measure != "cosine" and within is None:
        raise InvalidParameter("within", f"measure {measure} has no default radius; set within")
    if fields["recall"] is None:
        fields["recall"] = 0.95


def _check_shingles(fields: dict[str, Any]) -> None:
    if fields["threshold"] is None:
        raise InvalidParameter("threshold", "method shingles needs threshold")
    if fields["recall"] is not None:
        raise InvalidParameter("recall", "does not apply to method shingles, which finds every pair")
    if fields["measure"] == "hamming":
        raise InvalidParameter("measure", "hamming requires SimHash fingerprints; use method simhash")


def _check_bloom(fields: dict[str, Any]) -> None:
    for name in ("threshold", "recall", "num_hashes"):
        if fields[name] is None:
            raise InvalidParameter(name, f"method bloom needs {name}")
    if fields["measure"] == "hamming":
        raise InvalidParameter("measure", "hamming requires SimHash fingerprints; use jaccard")
    if (fields["bands"] is None) != (fields["rows"] is None):
        raise InvalidParameter("bands", "set both bands and rows of filters, or neither")


def _check_exact(fields: dict[str, Any]) -> None:
    for name in ("threshold", "recall"):
        if fields[name] is not None:
            raise InvalidParameter(name, f"{name} does not apply to method exact")


def _check_auto(fields: Mapping[str, Any]) -> None:
    """Check that a run can choose the threshold of a recipe with threshold auto."""
    if fields["threshold"] != AUTO:
        return
    measure = AUTO_MEASURES[fields["method"]]
    if fields["measure"] != measure:
        raise InvalidParameter(
            "threshold",
            f"auto requires measure {measure} with method {fields['method']}; the recipe has {fields['measure']}. "
            "Give a number",
        )
    for name in ("bands", "rows", "within"):
        if fields[name] is not None:
            raise InvalidParameter(name, f"cannot be combined with threshold auto, which determines {name}")


def _check_siblings(fields: Mapping[str, Any]) -> None:
    """Check that documents have names, which are words."""
    named = [name for name in _NAME_FIELDS if fields[name] is not None]
    if not named:
        return
    if fields["method"] == "simhash":
        raise InvalidParameter(named[0], "does not apply to method simhash, which compares fingerprints")
    if "siblings" in named and fields["measure"] != "jaccard":
        raise InvalidParameter("siblings", f"keep requires measure jaccard, not {fields['measure']}")
    if fields["tokens"] not in NAMING_TOKENS or fields["hash"] in PACKAGE_HASHES:
        raise InvalidParameter(named[0], f"requires tokens {', '.join(NAMING_TOKENS)} and no package's hash")


_CHECK_OF_METHOD: Mapping[str, Callable[[dict[str, Any]], None]] = {
    "minhash": _check_minhash,
    "simhash": _check_simhash,
    "shingles": _check_shingles,
    "bloom": _check_bloom,
    "exact": _check_exact,
}


def check_hash(fields: Mapping[str, Any]) -> None:
    """Raise InvalidParameter if the named hash is not compatible with the other fields."""
    named, method, weights = fields["hash"], fields["method"], fields["weights"]
    if named != "xxh3" and "hash" not in FIELDS_OF_METHOD[method]:
        raise InvalidParameter("hash", f"does not apply to method {method}")
    if named == "simhash-1e0ng":
        _check_package(
            named, fields, {"method": ("simhash",), "tokens": ("char",), "shingle": (4,), "weights": ("count",)}
        )
        _check_package(named, fields, {"bits": (32, 64), "seed": (0,)})
    if named == "datasketch":
        _check_package(
            named, fields, {"method": ("minhash",), "scheme": ("affine32", "legacy"), "weights": ("none", OWN_WEIGHTS)}
        )
        if weights == OWN_WEIGHTS:
            _check_package(named, fields, {"shingle": (1,)})
        check_integer("seed", fields["seed"], 0, 2**32 - 1)
    elif fields["scheme"] in ("affine32", "legacy"):
        raise InvalidParameter("scheme", f"{fields['scheme']} requires hash datasketch")


def _check_package(named: str, fields: Mapping[str, Any], wanted: Mapping[str, tuple[object, ...]]) -> None:
    """Check the fields whose values a package fixes."""
    for name, allowed in wanted.items():
        if fields[name] not in allowed:
            only = " or ".join(map(str, allowed))
            raise InvalidParameter(name, f"{fields[name]!r} given; hash {named} requires {name} {only}")


FOLDS = (
    *("urls", "signs", "points", "confusables", "traditional"),
    *("width", "accents", "punctuation", "numerals", "digits"),
)
# Look-alikes of digits are letters, so that digits cannot be read afterward.
_NOT_WITH_CONFUSABLES = ("numerals", "digits")
BYTE_TOKENS = ("bytes", "chunks")
USER_TOKENS = "user"
# Stop words apply to words, a dictionary to Chinese words.
_STOPPED_TOKENS = ("auto", "word", "chinese")
_CHUNKINGS = ("content", "fixed")
_CHUNK_BYTES = 1024
_LEAST_CONTENT_BYTES, _MOST_BYTES = 256, 1 << 20
_ASCII_LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
# Names of roles in conversations, in lower case, by the name that a recipe has.
_SPELLINGS: Mapping[str, tuple[str, ...]] = {
    "assistant": ("assistant", "gpt", "model", "chatgpt", "bot"),
    "system": ("system", "developer"),
    "tool": ("tool", "function", "observation"),
    "user": ("user", "human", "prompter"),
}


def checked_text(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the text fields of a recipe in their canonical form."""
    tokens, method = fields["tokens"], fields["method"]
    is_of_bytes = tokens in BYTE_TOKENS
    found: dict[str, Any] = {"fold": checked_fold(fields["fold"]), "roles": checked_roles(fields["roles"])}
    if fields["markup"] is not None:
        check_choice("markup", fields["markup"], ("html",))
    is_own = fields["weights"] == OWN_WEIGHTS
    for name in ("markup", "fold", "only_within", "roles"):
        if found.get(name, fields[name]) is not None and (is_of_bytes or is_own or tokens == USER_TOKENS):
            of = f"weights {OWN_WEIGHTS}" if is_own else f"tokens {tokens}"
            raise InvalidParameter(name, f"{name} does not apply to {of}, which are used as given")
    for name, kinds in (("stop_words", _STOPPED_TOKENS), ("dictionary", ("chinese",))):
        words = None if fields[name] is None else word_list(name, fields[name])
        named = fields[f"{name}_id"]
        if (words is not None or named is not None) and (tokens not in kinds or method == "exact"):
            raise InvalidParameter(name, f"{name} applies only to tokens {', '.join(kinds)}")
        if (words is not None or named is not None) and is_own:
            raise InvalidParameter(
                name, f"{name} does not apply to weights {OWN_WEIGHTS}; remove those tokens from the documents"
            )
        if words is not None and named not in (None, words.list_id):
            raise RecipeMismatch(
                "the recipe was made with a different word list", {f"{name}_id": (named, words.list_id)}
            )
        found |= {name: words, f"{name}_id": named if words is None else words.list_id}
    if fields["only_within"] == "":
        raise InvalidParameter("only_within", "the name of the field is empty")
    if "[]" in (fields["only_within"] or ""):
        raise InvalidParameter("only_within", f"{fields['only_within']!r} is a list; name a field with one value")
    found |= _checked_chunks(fields)
    _check_identifiers(fields, found["fold"] or ())
    if fields["tokenizer"] is not None and tokens != USER_TOKENS:
        raise InvalidParameter("tokenizer", f"a tokenizer name requires tokens {USER_TOKENS}")
    if tokens == USER_TOKENS and not (isinstance(fields["tokenizer"], str) and fields["tokenizer"]):
        raise InvalidParameter(
            "tokenizer", f"tokens {USER_TOKENS} need a tokenizer name, which is part of the recipe id"
        )
    if fields["weights"] == OWN_WEIGHTS and tokens not in (USER_TOKENS, "auto"):
        raise InvalidParameter("weights", f"own weights require tokens {USER_TOKENS}, not {tokens}")
    _check_hash(fields, found)
    return found | {"libraries": libraries_of({**fields, **found})}


def _check_hash(fields: Mapping[str, Any], found: Mapping[str, Any]) -> None:
    """Check that the hash of a package is not combined with incompatible text fields."""
    if fields["tokens"] in BYTE_TOKENS and fields["hash"] != "xxh3":
        raise InvalidParameter("hash", f"tokens {fields['tokens']} require hash xxh3, not {fields['hash']}")
    if fields["hash"] not in PACKAGE_HASHES:
        return
    if fields["tokens"] not in ("auto", "word", "char", USER_TOKENS):
        raise InvalidParameter("tokens", f"hash {fields['hash']} requires tokens auto, word or char")
    for name in ("markup", "fold", "stop_words_id", "only_within"):
        if {**fields, **found}[name] is not None:
            raise InvalidParameter(name, f"does not apply to hash {fields['hash']}, which has its own tokenizer")


def _check_identifiers(fields: Mapping[str, Any], fold: tuple[str, ...]) -> None:
    """Check that numbers that identify are read, and that a similarity decides."""
    if fields["identifiers"] is None:
        return
    check_choice("identifiers", fields["identifiers"], ("numbers",))
    tokens, weights = fields["tokens"], fields["weights"]
    if tokens in (*BYTE_TOKENS, USER_TOKENS) or weights in (OWN_WEIGHTS, "lexicon") or fields["hash"] in PACKAGE_HASHES:
        raise InvalidParameter(
            "identifiers",
            f"does not apply to tokens {tokens} with weights {weights} and hash {fields['hash']}; use tokens of texts",
        )
    if fields["measure"] == "hamming":
        raise InvalidParameter("identifiers", "does not apply to Hamming-only recipes; give a threshold")
    if fields["only_within"] is not None or fields["group"] == "components":
        raise InvalidParameter("identifiers", "cannot be combined with only_within or with group components")
    if "digits" in fold or "confusables" in fold:
        raise InvalidParameter(
            "identifiers", "cannot be combined with fold digits or confusables, which change numbers"
        )


def checked_fold(fold: object) -> tuple[str, ...] | None:
    """Return names of foldings in order of application; None if there are none."""
    names = fold.split(",") if isinstance(fold, str) else fold
    if names is None:
        return None
    if not isinstance(names, tuple | list | set | frozenset):
        raise InvalidParameter("fold", f"{fold!r} is not a list; choose from {', '.join(FOLDS)}")
    for name in names:
        check_choice("fold", name, FOLDS)
    if "confusables" in names and any(name in names for name in _NOT_WITH_CONFUSABLES):
        raise InvalidParameter("fold", f"confusables cannot be combined with {' or '.join(_NOT_WITH_CONFUSABLES)}")
    return tuple(name for name in FOLDS if name in names) or None


def _checked_chunks(fields: Mapping[str, Any]) -> dict[str, Any]:
    chunking, size = fields["chunking"], fields["chunk_bytes"]
    if fields["tokens"] != "chunks":
        for name, value in (("chunking", chunking), ("chunk_bytes", size)):
            if value is not None:
                raise InvalidParameter(name, f"{name} applies only to tokens chunks")
        return {}
    chunking = check_choice("chunking", "content" if chunking is None else chunking, _CHUNKINGS)
    least = _LEAST_CONTENT_BYTES if chunking == "content" else 1
    size = check_integer("chunk_bytes", _CHUNK_BYTES if size is None else size, least, _MOST_BYTES)
    if chunking == "content" and size & (size - 1):
        raise InvalidParameter("chunk_bytes", f"{size} is not a power of two, which chunks by content need")
    return {"chunking": chunking, "chunk_bytes": size}


def text_rules_of(fields: Mapping[str, Any]) -> _native.TextRules:
    """Return the text rules for the native core."""
    fold = fields.get("fold") or ()
    lists: dict[str, WordList | None] = {name: fields.get(name) for name in ("stop_words", "dictionary")}
    for name, words in lists.items():
        if words is None and fields.get(f"{name}_id") is not None:
            option = "--" + name.replace("_", "-")
            raise InvalidParameter(
                name,
                f"the recipe names a list ({fields[f'{name}_id']}) that is not stored in JSON; give it again "
                f"({option} FILE, or Recipe.replace)",
            )
    stop_words, dictionary = lists["stop_words"], lists["dictionary"]
    folded = {
        "fold": fold,
        "dictionary": None if dictionary is None else dictionary.dictionary(fold),
        "stop_words": None if stop_words is None else stop_words.stop_words(fold),
    }
    return _native.TextRules({**fields, **folded})


def libraries_of(fields: Mapping[str, Any]) -> str | None:
    """Return the libraries that affect the tokens, with their versions; None if only built-in rules apply."""
    rules = _native.TextRules({"fold": None, **fields, "dictionary": None, "stop_words": None})
    return ", ".join(rules.libraries(fields.get("tokens") or "auto")) or None


class RoleNames(NamedTuple):
    """Roles in ASCII lower case: only these count, or all but these."""

    names: tuple[str, ...] = ()
    are_counted: bool = False

    def counts(self, role: str | None) -> bool:
        """Return whether an item with this role counts."""
        return (role is not None and role.translate(_ASCII_LOWER) in self.names) == self.are_counted


ALL_ROLES = RoleNames()


def checked_roles(roles: object) -> tuple[str, ...] | None:
    """Return roles in their canonical form, sorted; None if none are given."""
    if roles is None:
        return None
    given = roles.split(",") if isinstance(roles, str) else roles
    names = list(given) if isinstance(given, tuple | list | set | frozenset) else []
    if not names or not all(isinstance(name, str) and name.strip() for name in names):
        raise InvalidParameter("roles", f"{roles!r} is not a list of roles, such as user,assistant")
    known = {spelling: name for name, spellings in _SPELLINGS.items() for spelling in spellings}
    lower = [name.strip().translate(_ASCII_LOWER) for name in names]
    return tuple(sorted({known.get(name, name) for name in lower}))


def check_roles(roles: RoleNames, text_fields: Sequence[str]) -> None:
    """Raise InvalidParameter if roles are asked for, but no text is in a list of items with roles."""
    if roles.are_counted and not any("[]" in name for name in text_fields):
        raise InvalidParameter("roles", "no text field is in a list; name one, such as messages[].content")


def role_paths(text_fields: Sequence[str]) -> list[str]:
    """Return the paths to the roles of the items that text fields are in."""
    lists = dict.fromkeys(name.rpartition("[]")[0] for name in text_fields if "[]." in name)
    return [f"{field}[].{name}" for field in lists for name in ("role", "from")]


def role_names(roles: tuple[str, ...] | None) -> RoleNames:
    """Return the turns that count with these roles of a recipe; all but system prompts if it has none."""
    if roles is None:
        return RoleNames(_SPELLINGS["system"])
    return RoleNames(tuple(spelling for name in roles for spelling in _SPELLINGS.get(name, (name,))), are_counted=True)
