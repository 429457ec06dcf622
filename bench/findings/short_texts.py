"""Short texts and Chinese ones: cat, dog, cat; twelve different Chinese sentences."""

import json
import tempfile
from collections.abc import Callable
from pathlib import Path

from evidence import tell

from rivals import gaoya_rival, text_dedup_rival

SHORT = ["cat", "dog", "cat", "the cat", "a dog ran"]
CHINESE = [
    "今天天气很好",
    "我们去公园散步",
    "数据库事务的隔离级别",
    "请输入您的密码",
    "火车将在五分钟后到达",
    "他昨天买了一本新书",
    "这道菜太咸了",
    "会议改到下周三上午",
    "手机没有电了",
    "图书馆周一闭馆",
    "孩子们在院子里玩",
    "价格上涨了百分之三",
]


LONG = [" ".join(f"{kind}{number}" for number in range(60)) for kind in ("alpha", "beta")]


def kept(dedup: Callable[[Path, Path, str], list[str]], texts: list[str], tokens: str) -> list[str]:
    """Return the kept texts."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "texts.jsonl"
        rows = [json.dumps({"id": str(row), "text": text}, ensure_ascii=False) for row, text in enumerate(texts)]
        path.write_text("\n".join(rows) + "\n", encoding="utf-8")
        try:
            return [texts[int(name)] for name in dedup(path, Path(folder) / "out", tokens)]
        except SystemExit as end:
            last = [line for line in str(end).splitlines() if line.strip()]
            raise RuntimeError(last[-1].strip() if last else "it ended without a message") from None


def tell_of(package: str, name: str, dedup: Callable[[Path, Path, str], list[str]], tokens: str) -> None:
    """Check that all different texts are kept, once each. Two long documents are added, as in any corpus."""
    for what, listed in (("short texts", SHORT), ("Chinese sentences", CHINESE)):
        texts = [*LONG, *listed]
        wanted = len(set(texts))
        try:
            stayed = kept(dedup, texts, tokens if what == "short texts" else "char")
        except (RuntimeError, ValueError, OSError) as error:
            tell(f"{name}: a corpus with {what} causes an error", package, [str(error)[:200]], reproduced=True)
            continue
        lost = sorted(set(texts) - set(stayed))
        seen = [f"{len(texts)} texts, {wanted} different: {len(stayed)} kept", f"removed, without a kept match: {lost}"]
        if len(stayed) > wanted:
            seen.append("equal texts stay twice")
        tell(f"{name}: removes {what} that match no other text", package, seen, reproduced=bool(lost))


if __name__ == "__main__":
    tell_of("text-dedup", "MinHash", text_dedup_rival.dedup_minhash, "word")
    tell_of("text-dedup", "SimHash", text_dedup_rival.dedup_simhash, "word")
    tell_of("gaoya", "MinHash, 3-grams", gaoya_rival.dedup_minhash, "word")
