//! What scalars that look alike are replaced by.

use unicode_security::confusable_detection::skeleton;

use super::output::Output;

/// For each scalar that may occur in normalized text and has another skeleton (UTS #39): that skeleton, normalized,
/// repeated until nothing changes. Hangul is left out: its syllables would fall apart.
pub fn tables(out: &mut Output, normalized: impl Fn(&str) -> String) {
    let is_hangul = |c: char| matches!(c, '\u{1100}'..='\u{11FF}' | '\u{3130}'..='\u{318F}' | '\u{A960}'..='\u{A97F}' | '\u{AC00}'..='\u{D7FF}');
    let (mut from, mut starts, mut pool) = (Vec::new(), vec![0u16], String::new());
    for c in super::scalars().filter(|&c| !is_hangul(c)) {
        let text = c.to_string();
        if normalized(&text) != text {
            continue;
        }
        let mut now = text.clone();
        for round in 0.. {
            let next = normalized(&skeleton(&now).collect::<String>());
            if next == now {
                break;
            }
            assert!(round < 9, "U+{:04X} has no lasting skeleton", c as u32);
            now = next;
        }
        if now != text {
            from.push(c as u32);
            pool.push_str(&now);
            starts.push(u16::try_from(pool.len()).expect("pool below 64 KiB"));
        }
    }
    let (major, minor, _) = unicode_security::UNICODE_VERSION;
    out.comment(&[
        &format!("Scalars that look like others (UTS #39, confusables of Unicode {major}.{minor}), ascending. The n-th is"),
        "replaced by bytes STARTS[n]..STARTS[n + 1] of POOL.",
    ]);
    out.array("CONFUSABLES", &from);
    out.array("CONFUSABLE_STARTS", &starts);
    out.array("CONFUSABLE_POOL", pool.as_bytes());
}
