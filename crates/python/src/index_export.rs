//! The documents of an index as JSON lines.

use std::fmt::Write;

use likewise_core::text::{Document, OwnTokens};
use likewise_disk::Error;
use likewise_disk::store::{Chunk, Content, Store};

#[derive(Debug, Clone, Copy)]
pub enum StoredText {
    Plain,
    /// The first line is the value within which it is compared.
    WithValue,
    /// Tokens cut by the user.
    Tokens,
}

/// Appends a line for each document of a chunk that is not gone.
pub fn export_chunk(
    chunk: &Chunk,
    store: &Store,
    measure: &str,
    kind: StoredText,
    out: &mut String,
) -> Result<(), Error> {
    let bytes = store.description().sketch_bytes as usize;
    for (place, &row) in chunk.rows().iter().enumerate() {
        if chunk.gone()[place] {
            continue;
        }
        out.push_str("{\"doc_id\":");
        push_json(chunk.id(place), out);
        let _ = write!(
            out,
            ",\"seq\":{},\"arrival_s\":{}",
            u64::from(row) + 1,
            chunk.arrivals_s()[place]
        );
        out.push_str(",\"sketch\":\"");
        for byte in &chunk.sketches()[place * bytes..(place + 1) * bytes] {
            let _ = write!(out, "{byte:02x}");
        }
        let _ = write!(out, "\",\"num_features\":{}", chunk.num_features()[place]);
        match chunk.verdicts()[place] {
            None => out.push_str(",\"is_new\":true"),
            Some(evidence) => {
                out.push_str(",\"is_new\":false,\"kept_id\":");
                push_json(&store.id(evidence.kept_row)?, out);
                let _ = write!(
                    out,
                    ",\"measure\":\"{measure}\",\"similarity\":{}",
                    evidence.similarity
                );
                if let Some(distance) = evidence.distance {
                    let _ = write!(out, ",\"distance\":{distance}");
                }
            }
        }
        if let Content::Text(text) = store.content(row)? {
            push_text(&text, kind, out);
        }
        out.push_str("}\n");
    }
    Ok(())
}

/// Returns a stored text, and its value if it has one; tokens are separated by spaces.
pub fn shown_text(stored: &[u8], kind: StoredText) -> (Option<String>, String) {
    let text = match kind {
        StoredText::Tokens => OwnTokens::new(stored).shown(),
        _ => String::from_utf8_lossy(stored).into_owned(),
    };
    match (kind, Document::Text(&text).split_value()) {
        (StoredText::WithValue, (value, Document::Text(rest))) => {
            (Some(value.to_owned()), rest.to_owned())
        }
        _ => (None, text),
    }
}

/// Appends a stored text, and its value if it has one.
fn push_text(stored: &[u8], kind: StoredText, out: &mut String) {
    let (value, text) = shown_text(stored, kind);
    if let Some(value) = value {
        out.push_str(",\"value\":");
        push_json(&value, out);
    }
    out.push_str(",\"text\":");
    push_json(&text, out);
}

fn push_json(text: &str, out: &mut String) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            control if control < ' ' || control == '\u{7f}' => {
                let _ = write!(out, "\\u{:04x}", u32::from(control));
            }
            other => out.push(other),
        }
    }
    out.push('"');
}
