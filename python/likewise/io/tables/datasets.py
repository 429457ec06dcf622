"""Directories of Hugging Face datasets: Arrow streams, and the files that describe them."""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from likewise.errors import InvalidInput
from likewise.io.source.added import Added

STATE = "state.json"
INFO = "dataset_info.json"
SPLITS = "dataset_dict.json"
COMPANIONS = (STATE, INFO, SPLITS)


@dataclass(frozen=True)
class Dataset:
    """A directory written by ``save_to_disk``."""

    path: Path
    # Content of ``state.json``
    state: dict[str, Any]

    @property
    def data_files(self) -> list[Path]:
        """The Arrow streams, in the order of their rows."""
        return [self.path / entry["filename"] for entry in self.state["_data_files"]]


def open_dataset(path: Path, *, whole: bool = True) -> Dataset | None:
    """Return the dataset in a directory; None if there is none, or if data files are missing and `whole` is false."""
    if not (path / STATE).is_file():
        return None
    try:
        state = json.loads((path / STATE).read_bytes())
        names = [entry["filename"] for entry in state["_data_files"]]
    except (ValueError, RecursionError, KeyError, TypeError):
        # state.json of another program.
        return None
    for name in names:
        if not isinstance(name, str) or Path(name).name != name or not (path / name).is_file():
            if not whole:
                return None
            raise InvalidInput(f"{STATE} names {name!r}, which is not a file in the same directory", str(path))
    if state.get("_indices_data_files") or state.get("_indices_files"):
        raise InvalidInput("the dataset has an indices mapping; call flatten_indices() and save it again", str(path))
    return Dataset(path, state)


def write_companions(
    dataset: Dataset, target: Path, *, num_kept: int, num_bytes: int, answer: str, added: Added | None = None
) -> None:
    """Write the files that turn the kept streams of a dataset into a dataset."""
    names = "" if added is None else " ".join(added.names)
    old = f"{dataset.state.get('_fingerprint')} {answer} {num_kept}{names}"
    fingerprint = hashlib.blake2b(old.encode(), digest_size=8).hexdigest()
    _write(target / STATE, {**dataset.state, "_fingerprint": fingerprint})
    info_path = dataset.path / INFO
    if not info_path.is_file():
        return
    try:
        info = json.loads(info_path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"not JSON: {error}", str(info_path)) from error
    splits = info.get("splits") if isinstance(info, dict) else None
    split = splits.get(dataset.state.get("_split")) if isinstance(splits, dict) else None
    if isinstance(split, dict):
        split |= {"num_examples": num_kept, "num_bytes": num_bytes}
    features = info.get("features") if isinstance(info, dict) else None
    if added is not None and isinstance(features, dict):
        features |= added.features()
    _write(target / INFO, info)


def _write(path: Path, content: object) -> None:
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8", newline="\n")
