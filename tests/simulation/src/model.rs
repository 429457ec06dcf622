//! What an index must answer, by the rules alone: every document is compared, and nothing is optimized.

use likewise_disk::store::Evidence;

/// Maximum distance of a match.
pub const WITHIN: u32 = 3;
/// Bits of a fingerprint: few, since planning their search takes a good part of a history.
pub const BITS: u32 = 32;

/// A document.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    /// The number in its id.
    pub id: u32,
    /// Its fingerprint.
    pub fingerprint: u64,
    /// Arrival time; never decreasing.
    pub arrival_s: u64,
    /// Why it was removed; `None` for a kept document.
    pub evidence: Option<Evidence>,
    /// Whether the user removed it or it expired.
    pub is_gone: bool,
    /// Whether it is compared with others: it did not collapse into an equal document.
    stands: bool,
}

/// The effects of a removal.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Removal {
    /// Whether the document was kept.
    pub was_kept: bool,
    /// Documents that become kept.
    pub promoted: Vec<u32>,
    /// Documents that are reassigned to another kept document.
    pub moved: Vec<(u32, Evidence)>,
}

/// All documents in order of arrival.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Model {
    /// The documents.
    pub documents: Vec<Document>,
    /// Number of leading documents that are known to be gone.
    expired_below: usize,
}

impl Model {
    /// Returns the row of an id that is not gone.
    pub fn row_of(&self, id: u32) -> Option<usize> {
        let is_it = |document: &Document| document.id == id && !document.is_gone;
        self.documents.iter().position(is_it)
    }

    /// Number of documents that are not gone.
    pub fn num_documents(&self) -> usize {
        let present = self.documents.iter().filter(|document| !document.is_gone);
        present.count()
    }

    fn is_kept(&self, row: usize) -> bool {
        let document = &self.documents[row];
        !document.is_gone && document.evidence.is_none()
    }

    /// Returns the nearest kept document, the first of several; `but` is ignored.
    fn best(&self, fingerprint: u64, but: Option<usize>) -> Option<Evidence> {
        let mut best: Option<Evidence> = None;
        for row in 0..self.documents.len() {
            let distance = (self.documents[row].fingerprint ^ fingerprint).count_ones();
            if Some(row) != but
                && distance <= WITHIN
                && self.is_kept(row)
                && self.documents[row].stands
                && best.is_none_or(|best| best.distance > Some(distance as u16))
            {
                best = Some(evidence(row, distance));
            }
        }
        best
    }

    /// Returns the verdict of a document if it arrived now, and whether it collapses into an equal one.
    pub fn decide(&self, fingerprint: u64) -> (Option<Evidence>, bool) {
        let equal = || {
            let all = self.documents.iter().enumerate();
            all.filter(|(_, other)| {
                other.stands && !other.is_gone && other.fingerprint == fingerprint
            })
        };
        if let Some((row, _)) = equal().find(|&(row, _)| self.is_kept(row)) {
            return (Some(evidence(row, 0)), true);
        }
        for (_, other) in equal() {
            if let Some(evidence) = other.evidence
                && !self.documents[evidence.kept_row as usize].is_gone
            {
                return (Some(evidence), true);
            }
        }
        (self.best(fingerprint, None), false)
    }

    /// Expires everything that arrived before a moment; returns whether that changes anything. If `is_renewed`, the
    /// duplicates of expired documents are decided again, the newest first.
    pub fn expire(&mut self, before_s: u64, is_renewed: bool) -> bool {
        let below = self
            .documents
            .partition_point(|document| document.arrival_s < before_s);
        let is_news = below > self.expired_below;
        if is_news {
            let before = std::mem::replace(&mut self.expired_below, below);
            for document in &mut self.documents[..below] {
                document.is_gone = true;
            }
            for row in before..if is_renewed { below } else { before } {
                let mut removal = Removal::default();
                let members = self.members(row);
                self.decide_again(members.into_iter().rev(), &mut removal);
            }
        }
        is_news
    }

    /// Adds a document; returns its row and whether it is new. The id must not belong to another document.
    pub fn add(&mut self, id: u32, fingerprint: u64, now_s: u64) -> (usize, bool) {
        if let Some(row) = self.row_of(id) {
            return (row, false);
        }
        let (evidence, collapses) = self.decide(fingerprint);
        let last_s = self.documents.last().map_or(0, |last| last.arrival_s);
        self.documents.push(Document {
            id,
            fingerprint,
            arrival_s: now_s.max(last_s),
            evidence,
            is_gone: false,
            stands: !collapses,
        });
        (self.documents.len() - 1, true)
    }

    /// Returns the documents that were removed because of `leader`.
    pub fn members(&self, leader: usize) -> Vec<usize> {
        let is_member = |&row: &usize| {
            let document = &self.documents[row];
            let leader_of = document.evidence.map(|evidence| evidence.kept_row as usize);
            !document.is_gone && leader_of == Some(leader)
        };
        (0..self.documents.len()).filter(is_member).collect()
    }

    /// Removes an existing document.
    pub fn remove(&mut self, row: usize) -> Removal {
        let mut removal = Removal {
            was_kept: self.is_kept(row),
            ..Removal::default()
        };
        self.documents[row].is_gone = true;
        if !removal.was_kept {
            return removal;
        }
        let members = self.members(row);
        self.decide_again(members.into_iter(), &mut removal);
        removal
    }

    fn decide_again(&mut self, members: impl Iterator<Item = usize>, removal: &mut Removal) {
        for member in members {
            let best = self.best(self.documents[member].fingerprint, Some(member));
            let document = &mut self.documents[member];
            document.evidence = best;
            match best {
                Some(evidence) => removal.moved.push((member as u32, evidence)),
                None => {
                    document.stands = true;
                    removal.promoted.push(member as u32);
                }
            }
        }
    }
}

fn evidence(row: usize, distance: u32) -> Evidence {
    Evidence {
        kept_row: row as u32,
        similarity: 1.0 - f64::from(distance) / f64::from(BITS),
        distance: Some(distance as u16),
    }
}
