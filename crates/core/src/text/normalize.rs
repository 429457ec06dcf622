//! How is a text brought into its normalised form?

use super::compose::Run;
use super::tables::{self, STABLE, WHITE_SPACE, WORD_BREAK, properties};
use super::utf8;

/// What becomes of white space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spaces {
    /// Runs become one space, both ends are trimmed: the normalised text of the definitions.
    Collapse,
    /// Left as it is where words cannot tell the difference, which is cheaper: a run is collapsed only before
    /// a scalar that attaches to it (WB4).
    Words,
}

/// Writes the normalised text to `out`, which is cleared first.
pub(crate) fn normalize(text: &str, spaces: Spaces, out: &mut Vec<u8>) {
    out.clear();
    out.reserve(text.len() + 64);
    let mut writer = Writer {
        out,
        spaces,
        last_rank: 0,
        run: Run::default(),
        in_run: false,
    };
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let (c, len) = utf8::decode(bytes, at);
        let property = tables::property(c);
        if property & STABLE != 0 {
            writer.stable(c, property);
        } else {
            match tables::mapping(c) {
                None => writer.unstable(c, property),
                Some(mapped) => {
                    let mut i = 0;
                    while i < mapped.len() {
                        let (m, len) = utf8::decode(mapped, i);
                        let property = tables::property(m);
                        if property & STABLE != 0 {
                            writer.stable(m, property);
                        } else {
                            writer.unstable(m, property);
                        }
                        i += len;
                    }
                }
            }
        }
        at += len;
    }
    writer.finish();
}

struct Writer<'a> {
    out: &'a mut Vec<u8>,
    spaces: Spaces,
    /// Rank of the combining class of the last scalar.
    last_rank: u8,
    run: Run,
    in_run: bool,
}

impl Writer<'_> {
    fn stable(&mut self, c: u32, property: u8) {
        if self.in_run {
            self.run.finish(self.out);
            self.in_run = false;
        }
        self.last_rank = 0;
        if property & WHITE_SPACE != 0 && self.spaces == Spaces::Collapse {
            if !self.out.is_empty() && self.out.last() != Some(&b' ') {
                self.out.push(b' ');
            }
            return;
        }
        if attaches(property) {
            self.collapse_end();
        }
        utf8::push(c, self.out);
    }

    fn unstable(&mut self, c: u32, property: u8) {
        if self.in_run {
            self.run.push(c);
            return;
        }
        if attaches(property) {
            self.collapse_end();
        }
        let (rank, composes) = tables::order(c);
        if !composes && rank >= self.last_rank {
            self.last_rank = rank;
            utf8::push(c, self.out);
            return;
        }
        // Back to the last scalar that nothing before it interacts with.
        let mut start = self.out.len();
        while start > 0 {
            start = utf8::last_start(&self.out[..start]);
            if tables::property(utf8::decode(self.out, start).0) & STABLE != 0 {
                break;
            }
        }
        let mut at = start;
        while at < self.out.len() {
            let (c, len) = utf8::decode(self.out, at);
            self.run.push(c);
            at += len;
        }
        self.out.truncate(start);
        self.run.push(c);
        self.in_run = true;
    }

    /// Turns the white space at the end into what is left of it in the normalised text.
    fn collapse_end(&mut self) {
        if self.spaces == Spaces::Collapse {
            return;
        }
        let mut end = self.out.len();
        while end > 0 {
            let start = utf8::last_start(&self.out[..end]);
            if tables::property(utf8::decode(self.out, start).0) & WHITE_SPACE == 0 {
                break;
            }
            end = start;
        }
        if end < self.out.len() {
            self.out.truncate(end);
            if end > 0 {
                self.out.push(b' ');
            }
        }
    }

    fn finish(&mut self) {
        if self.in_run {
            self.run.finish(self.out);
        }
        if self.spaces == Spaces::Collapse && self.out.last() == Some(&b' ') {
            self.out.pop();
        }
    }
}

/// Whether the word boundary rules glue the scalar to what stands before it (WB4).
fn attaches(property: u8) -> bool {
    matches!(
        property & WORD_BREAK,
        properties::EXTEND | properties::FORMAT | properties::ZWJ
    )
}
