#!/usr/bin/env bash
# Claim: The Unicode words of Go's simhash leave out numbers, and its ASCII words leave out all other letters: all texts without a word have one fingerprint of 64 ones.
# Package: github.com/mfonda/simhash v0.0.0-20151007195837-79f94a1100d6 (Go)
# Expected: Two notices with different prices have different fingerprints, and so have two Chinese sentences.
# Happens: NewUnicodeWordFeatureSet matches letters only, so texts that differ in numbers are at distance 0. NewWordFeatureSet sees no Chinese or Cyrillic word and cuts café to caf. A text without features gets ffffffffffffffff, which is a full vote of ties.
# Seen: "ferry 5" and "ferry 9": distance 0; 今天天气很好 and Паром ходит: both ffffffffffffffff (2026-11-28)
# Matters: Within any radius all texts of the scripts that are not seen are duplicates of one another, and so are price lists.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat > main.go <<'GO'
package main

import (
	"fmt"

	"github.com/mfonda/simhash"
	"golang.org/x/text/unicode/norm"
)

func main() {
	for _, text := range []string{"ferry 5", "ferry 9", "今天天气很好", "Паром ходит", "café", "caf", "12.5"} {
		ascii := simhash.Simhash(simhash.NewWordFeatureSet([]byte(text)))
		unicode := simhash.Simhash(simhash.NewUnicodeWordFeatureSet([]byte(text), norm.NFC))
		fmt.Printf("%s %016x %016x\n", text, ascii, unicode)
	}
}
GO
go mod init finding 2> log.txt
go get github.com/mfonda/simhash@v0.0.0-20151007195837-79f94a1100d6 golang.org/x/text@v0.44.0 2>> log.txt
go run . | tee seen.txt
diff - seen.txt <<'SEEN'
ferry 5 afebfddfce59ffef 29a97d9bca58f907
ferry 9 afebfddfce59ffe7 29a97d9bca58f907
今天天气很好 ffffffffffffffff fca97ac8e9576c78
Паром ходит ffffffffffffffff 7bf7f9b7f0583fbf
café d8d5c1186ba97fc9 ceea3eb38a0640f1
caf d8d5c1186ba97fc9 d8d5c1186ba97fc9
12.5 af73bf4fb6ebbffa ffffffffffffffff
SEEN
