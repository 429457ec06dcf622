//! The rule on what is read of partitions gives the verdicts of an index in a directory, from every view of the same order.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use likewise_core::features::{Extractor, FeatureHash, FeatureRules, Weights};
use likewise_core::hash::mix64;
use likewise_core::isa::Isa;
use likewise_core::parallel::Run;
use likewise_core::sketch::Scheme;
use likewise_core::text::{Document, Tokens};
use likewise_core::verify::{Measure, NameRules, Required};
use likewise_disk::environment::Environment;
use likewise_disk::store::{Description, Durability, Evidence, Keeps};
use likewise_index::cluster::{
    Answer, Arrived, ClusterRule, Decision, Effects, Kind, Names, Past, Tag,
};
use likewise_index::{
    Documents, Error, Index, Matching, Method, Opening, Rules, Sketching, TextKind, Verdicts,
};

#[path = "cluster/damaged.rs"]
mod damaged;

static GO_ON: AtomicBool = AtomicBool::new(false);
const PARTITIONS: u32 = 5;

/// Numbers by chance, the same in each run.
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: usize) -> usize {
        self.0 += 1;
        (mix64(self.0) % end as u64) as usize
    }
}

fn strings(packed: &[u8], width: usize) -> Vec<Vec<u8>> {
    let (mut found, mut at) = (Vec::new(), 0);
    while at < packed.len() {
        let mut length = [0; 4];
        length[..width].copy_from_slice(&packed[at..at + width]);
        let end = at + width + u32::from_le_bytes(length) as usize;
        found.push(packed[at + width..end].to_vec());
        at = end;
    }
    found
}

/// A partition as the servers keep it.
#[derive(Default)]
struct Partition {
    strings: HashMap<Vec<u8>, Vec<u8>>,
    hashes: HashMap<(Vec<u8>, Vec<u8>), Vec<u8>>,
    changes: BTreeMap<usize, Vec<u8>>,
}

impl Partition {
    fn write(&mut self, position: usize, effects: &Effects) {
        let mut at = 0;
        for name in strings(&effects.tables, 2) {
            let end = at + usize::from(name[0]);
            let string = self.strings.entry(name[1..].to_vec()).or_default();
            string.extend_from_slice(&effects.entries[at..end]);
            at = end;
        }
        assert_eq!(at, effects.entries.len());
        let fields = strings(&effects.chunks, 2)
            .into_iter()
            .zip(strings(&effects.fields, 2));
        self.hashes.extend(fields.zip(strings(&effects.records, 4)));
        if !effects.changes.is_empty() {
            self.changes.insert(position, effects.changes.clone());
        }
    }

    /// The value of a field; of the empty field, all fields of a chunk with their values.
    fn all_of(&self, chunk: &[u8], field: &[u8]) -> Vec<u8> {
        if !field.is_empty() {
            let value = self.hashes.get(&(chunk.to_vec(), field.to_vec()));
            return value.cloned().unwrap_or_default();
        }
        let mut packed = Vec::new();
        for ((_, field), value) in self.hashes.iter().filter(|((name, _), _)| name == chunk) {
            for part in [field, value] {
                packed.extend_from_slice(&(part.len() as u32).to_le_bytes());
                packed.extend_from_slice(part);
            }
        }
        packed
    }

    fn fold(&mut self, to: usize) {
        let later = self.changes.split_off(&to);
        for packed in std::mem::replace(&mut self.changes, later).into_values() {
            let mut parts = strings(&packed, 4).into_iter();
            while let (Some(head), Some(part)) = (parts.next(), parts.next()) {
                let name = head[1..].to_vec();
                match head[0] {
                    b'A' | b'D' => {
                        let string = self.strings.entry(name).or_default();
                        let entries = string.chunks(part.len()).filter(|entry| **entry != part);
                        *string = entries.flatten().copied().collect();
                        if head[0] == b'A' {
                            string.extend_from_slice(&part);
                        }
                    }
                    b'S' => {
                        let record = parts.next().unwrap();
                        self.hashes.insert((name, part), record).unwrap();
                    }
                    _ => {
                        self.hashes.remove(&(name, part)).unwrap();
                    }
                }
            }
        }
    }
}

/// An operation of the log.
struct Logged {
    row: u32,
    num: u32,
    tag: Tag,
    payload: Vec<u8>,
    verdict: Vec<u8>,
}

/// Log and partitions, without failures.
struct Views {
    rule: Arc<ClusterRule>,
    partitions: Vec<Partition>,
    log: Vec<Logged>,
    row: u32,
    low: usize,
    written: usize,
    chance: Chance,
}

fn verdicts(
    rule: &ClusterRule,
    payload: &[u8],
    row: u32,
    verdict: &[u8],
) -> Result<Verdicts, Error> {
    rule.verdicts(&rule.operation(payload)?, row, rule.answer(verdict)?)
}

impl Views {
    fn decide(&self, payload: &[u8], tag: Tag) -> Vec<u8> {
        self.decided(payload, tag).verdict().unwrap()
    }

    fn decided(&self, payload: &[u8], tag: Tag) -> Decision {
        let low_row = self.log.get(self.low).map_or(self.row, |of| of.row);
        let below = self.log[..self.low].iter();
        let below: Vec<_> = below.map(|of| (of.row, of.num, of.tag)).collect();
        let tail: Vec<_> = (self.log[self.low..].iter())
            .map(|of| Past {
                row: of.row,
                second: 0,
                tag: of.tag,
                payload: &of.payload,
                verdict: &of.verdict,
            })
            .collect();
        let arrived = Arrived {
            row: self.row,
            second: 0,
            tag,
            low_row,
            below: &below,
            tail: &tail,
        };
        let mut decision = Decision::new(self.rule.clone(), payload, &arrived).unwrap();
        loop {
            let round = decision.wanted().unwrap();
            if round.is_empty() {
                return decision;
            }
            for wanted in round {
                let partition = &self.partitions[wanted.partition as usize];
                let names = strings(&wanted.tables, 2);
                let found: Vec<&[u8]> = names
                    .iter()
                    .map(|name| partition.strings.get(name).map_or(&[][..], Vec::as_slice))
                    .collect();
                let fields = strings(&wanted.records, 2);
                let records: Vec<Vec<u8>> = fields
                    .chunks(2)
                    .map(|pair| partition.all_of(&pair[0], &pair[1]))
                    .collect();
                let records: Vec<Option<&[u8]>> =
                    records.iter().map(|one| Some(one.as_slice())).collect();
                let changes = partition.changes.range(..self.low);
                let changes: Vec<&[u8]> = changes.map(|(_, packed)| packed.as_slice()).collect();
                decision
                    .take(wanted.partition, &found, &records, &changes)
                    .unwrap();
            }
        }
    }

    /// Does an operation, decided from two views; gives its verdict and first row.
    fn run(&mut self, payload: Vec<u8>) -> (Vec<u8>, u32) {
        let tag = [self.chance.below(256) as u8, self.chance.below(256) as u8];
        let verdict = self.decide(&payload, tag);
        self.go_on();
        assert_eq!(self.decide(&payload, tag), verdict);
        let row = self.row;
        let num = self.rule.counts(&verdict).unwrap().added as u32;
        self.row += num;
        self.log.push(Logged {
            row,
            num,
            tag,
            payload: payload.clone(),
            verdict: verdict.clone(),
        });
        self.go_on();
        (verdict, row)
    }

    /// Writes, moves the low mark and folds, each as far as it comes.
    fn go_on(&mut self) {
        let num = self.chance.below(self.log.len() - self.written + 1);
        for position in self.written..self.written + num {
            let of = &self.log[position];
            let effects = self
                .rule
                .effects(&of.payload, of.row, 0, of.tag, &of.verdict);
            for effects in effects.unwrap() {
                self.partitions[effects.partition as usize].write(position, &effects);
            }
        }
        self.written += num;
        self.low += self.chance.below(self.written - self.low + 1);
        for place in 0..self.partitions.len() {
            let to = self.chance.below(self.low + 1);
            self.partitions[place].fold(to);
        }
    }
}

fn all_rules() -> Vec<(&'static str, Rules)> {
    let required = |threshold| Required {
        threshold,
        short_margin: 0.0,
        names: NameRules::default(),
        identifiers: false,
    };
    let rules = |method, matching, keeps| Rules {
        method,
        matching,
        seed: 0,
        keeps,
    };
    let simhash = |within| Method::Simhash { bits: 64, within };
    let near = |short_threshold| Matching::Distance { short_threshold };
    let verified = |measure, threshold| Matching::Verified {
        measure,
        required: required(threshold),
    };
    let minhash = Method::Minhash {
        num_slots: 32,
        slot_bytes: 2,
        scheme: Scheme::Bucket,
        bands: 16,
        rows: 2,
    };
    vec![
        ("near", rules(simhash(3), near(0.3), Keeps::Sketch)),
        ("short", rules(simhash(12), near(0.9), Keeps::Sketch)),
        (
            "cosine",
            rules(simhash(14), verified(Measure::Cosine, 0.8), Keeps::Shingles),
        ),
        (
            "jaccard",
            rules(minhash, verified(Measure::Jaccard, 0.6), Keeps::Shingles),
        ),
    ]
}

fn sketching(rules: Rules) -> Sketching {
    let features = FeatureRules {
        tokens: Tokens::Word,
        shingle: 1,
        weights: Weights::None,
        seed: 0,
        hash: FeatureHash::Xxh3,
    };
    Sketching {
        rules,
        make_extractor: Arc::new(move |isa: Isa| Extractor::new(features, isa)),
        text_kind: TextKind::Text,
        isa: Isa::best(),
    }
}

fn index_in(folder: &Path, sketching: Sketching) -> Index {
    let rules = sketching.rules;
    let description = Description {
        recipe_json: "{}".to_owned(),
        recipe_id: "cluster".to_owned(),
        sketch_id: "cluster".to_owned(),
        sketch_bytes: rules.sketch_bytes() as u32,
        keeps: rules.keeps,
        attached: BTreeMap::new(),
    };
    let opening = Opening {
        sketching,
        durability: Durability::Interval(std::time::Duration::from_secs(3600)),
        ttl_s: None,
        is_renewed: false,
        flush_rows: Some(50),
        accept_loss: false,
        accept_clock: false,
        environment: Environment::default(),
    };
    Index::create(folder, &description, opening).unwrap()
}

/// Templated texts, some short, blank or repeated, so that classes and full buckets occur.
fn text(chance: &mut Chance) -> String {
    match chance.below(20) {
        0 => return String::new(),
        1 => return format!("short {}", chance.below(4)),
        _ => {}
    }
    let mut words: Vec<String> = (0..70).map(|i| format!("word{i}")).collect();
    let num = [0, 1, 1, 2, 3, 5, 10, 40][chance.below(8)];
    for _ in 0..num {
        let place = chance.below(words.len());
        words[place] = format!("other{}", chance.below(300));
    }
    words.join(" ")
}

fn named(
    evidence: &[Option<Evidence>],
    kept_ids: &[String],
) -> Vec<Option<(String, f64, Option<u16>)>> {
    let mut kept_ids = kept_ids.iter();
    let named = evidence.iter().map(|evidence| {
        let evidence = (*evidence)?;
        let id = kept_ids.next().unwrap().clone();
        Some((id, evidence.similarity, evidence.distance))
    });
    named.collect()
}

#[test]
fn every_view_decides_as_the_index_in_a_directory() {
    for (number, (name, rules)) in (0..).zip(all_rules()) {
        for (seed, expected) in [(1, 1), (2, 100_000), (3, 1_000_000_000)] {
            let place = format!("likewise-cluster-{name}-{seed}-{}", std::process::id());
            let folder = std::env::temp_dir().join(place);
            let sketching = sketching(rules);
            let index = index_in(&folder, sketching.clone());
            let names = match Names::for_expected(&rules, expected) {
                Ok(names) => names,
                // Wide radii have no plan for many documents.
                Err(error) => {
                    assert!(error.to_string().contains("smaller distance"), "{error}");
                    Names::for_expected(&rules, 10_000).unwrap()
                }
            };
            let rule = ClusterRule::new(sketching.clone(), names, PARTITIONS, None).unwrap();
            let mut views = Views {
                rule: Arc::new(rule),
                partitions: (0..PARTITIONS).map(|_| Partition::default()).collect(),
                log: Vec::new(),
                row: 0,
                low: 0,
                written: 0,
                chance: Chance(number * 1000 + seed),
            };
            let mut chance = Chance(seed << 32 | number);
            for _ in 0..60 {
                let num = [1, 1, 5, 30][chance.below(4)];
                let texts: Vec<String> = (0..num).map(|_| text(&mut chance)).collect();
                let ids: Vec<String> = (0..num)
                    .map(|_| format!("doc-{}", chance.below(900)))
                    .collect();
                let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
                let documents: Documents = sketching
                    .documents(
                        std::slice::from_ref(&(0..texts.len())),
                        |i| Document::Text(&texts[i]),
                        Run::alone(&GO_ON),
                    )
                    .unwrap();
                let checked = index.check(&documents, None, Run::alone(&GO_ON)).unwrap();
                let payload = views.rule.check(&documents);
                let verdict = views.decide(&payload, [0, 0]);
                let found = verdicts(&views.rule, &payload, views.row, &verdict).unwrap();
                assert_eq!(
                    named(&found.evidence, &found.kept_ids),
                    named(&checked.evidence, &checked.kept_ids),
                    "{name}"
                );
                let added = index.add(&ids, &documents, None, None, 0, Run::alone(&GO_ON));
                let payload = views.rule.add(&ids, &documents);
                let (verdict, row) = views.run(payload.clone());
                let found = verdicts(&views.rule, &payload, row, &verdict);
                match (added, found) {
                    (Ok(added), Ok(found)) => {
                        assert_eq!(
                            named(&found.evidence, &found.kept_ids),
                            named(&added.evidence, &added.kept_ids),
                            "{name}"
                        );
                        assert_eq!(found.added, added.added);
                        assert_eq!(found.rows, added.rows);
                    }
                    (Err(Error::Input { position, .. }), Err(error)) => {
                        let Error::Input {
                            position: there, ..
                        } = error
                        else {
                            panic!("{error}");
                        };
                        assert_eq!(position, there);
                    }
                    (added, found) => panic!("{name}: {added:?} {found:?}"),
                }
                for _ in 0..chance.below(3) {
                    let id = format!("doc-{}", chance.below(900));
                    let removed = index.remove(&id, &GO_ON);
                    let (verdict, _) = views.run(views.rule.of_id(Kind::Remove, &id));
                    match (removed, views.rule.answer(&verdict).unwrap()) {
                        (Err(Error::UnknownId(_)), Answer::Unknown) => {}
                        (Ok(removed), Answer::Removed(found)) => {
                            let was_kept = found.record.verdict.is_none();
                            assert_eq!(was_kept, removed.removal.was_kept);
                            let (mut promoted, mut moved) = (Vec::new(), Vec::new());
                            for changed in found.changed {
                                match changed.kept_id {
                                    None => promoted.push(changed.record.id),
                                    Some(kept) => moved.push((changed.record.id, kept)),
                                }
                            }
                            assert_eq!(promoted, removed.promoted_ids, "{name}");
                            assert_eq!(moved, removed.moved_ids, "{name}");
                        }
                        (removed, found) => panic!("{name}: {removed:?} {found:?}"),
                    }
                }
            }
            index.close().unwrap();
            drop(index);
            std::fs::remove_dir_all(&folder).unwrap();
        }
    }
}
