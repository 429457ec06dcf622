use super::*;
use crate::isa::Isa;

fn scanned(
    items: &[&str],
    documents: &[&str],
    min_ngrams: usize,
) -> (ItemTable, Matches, Vec<Agreement>) {
    let table = ItemTable::new(items.iter().copied(), min_ngrams);
    let counts = ItemCounts::new(&table);
    let mut found = Matches::default();
    let mut scanner = ItemScanner::new(&table, &counts, Isa::best());
    for (i, document) in documents.iter().enumerate() {
        scanner.scan(i as u32, document, &mut found);
    }
    let agreement = judge(&table, &counts, &found);
    (table, found, agreement)
}

const ITEM: &str =
    "The quick brown fox jumps over the lazy dog while nine small cats watch from a wall";

#[test]
fn a_copy_is_found_where_it_stands() {
    let document = format!(
        "Before it. {} And after it.",
        ITEM.to_uppercase().replace(' ', "\n ")
    );
    let (_, found, agreement) = scanned(&[ITEM], &["nothing here", &document], 8);
    assert_eq!((found.documents, found.texts), (vec![1], vec![0]));
    assert_eq!(&document[found.starts[0] as usize..][..3], "THE");
    assert_eq!(
        &document[..found.ends[0] as usize][found.ends[0] as usize - 4..],
        "WALL"
    );
    assert_eq!(found.runs, [17]);
    assert_eq!(
        agreement,
        [Agreement {
            share: 1.0,
            similarity: 1.0
        }]
    );
}

#[test]
fn two_copies_are_two_windows() {
    let document = format!("{ITEM}. {ITEM}.");
    let (_, found, _) = scanned(&[ITEM, "short", ITEM], &[&document], 8);
    assert_eq!(found.texts, [0, 0]);
    assert!(found.ends[0] < found.starts[1]);
}

#[test]
fn short_texts_are_never_found() {
    let (table, found, _) = scanned(
        &["one two three four five six"],
        &["one two three four five six"],
        3,
    );
    assert!(table.is_short(0) && found.texts.is_empty());
    let (table, found, _) = scanned(
        &["one two three four five six"],
        &["one two three four five six"],
        2,
    );
    assert!(!table.is_short(0) && found.texts == [0]);
}

#[test]
fn what_is_too_long_to_align_is_covered() {
    let words: Vec<String> = (0..9000).map(|i| format!("w{i}")).collect();
    let item = words.join(" ");
    let mut other = words.clone();
    other[1000] = "else".to_owned();
    let (_, found, agreement) = scanned(&[&item], &[&other.join(" ")], 8);
    assert_eq!((found.texts, found.runs), (vec![0], vec![7999]));
    assert!(agreement[0].similarity > 0.99 && agreement[0].similarity < 1.0);
}

#[test]
fn another_number_in_the_place_of_one_is_noted() {
    let item = "Nora buys 14 baskets of 1,000 pears at the harbor and gives 20 of them to Emil";
    let others = [
        item.to_owned(),
        item.replace("1,000", "1000"),
        item.replace(" harbor", "\n2. harbor"),
        item.replace("14 ", "fourteen "),
        item.replace("14", "15"),
        item.replace("20", "２１"),
        format!("{} 3. Next", item.replace("to Emil", "")),
    ];
    let documents: Vec<&str> = others.iter().map(String::as_str).collect();
    let (_, found, _) = scanned(&[item], &documents, 8);
    assert_eq!(found.documents, [0, 1, 2, 3, 4, 5, 6]);
    assert_eq!(found.other_numbers, [0, 0, 0, 0, 1, 1, 0]);
    let item = "14 baskets of pears are sold at the harbor, and those left over number 9";
    let (_, found, _) = scanned(
        &[item],
        &[
            "15 baskets of pears are sold at the harbor, and those left over number 9",
            "14 baskets of pears are sold at the harbor, and those left over number 8",
        ],
        8,
    );
    assert_eq!(found.other_numbers, [1, 1]);
}
