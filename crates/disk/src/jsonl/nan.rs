//! How are `NaN` and `Infinity` read, which JSON forbids and Python writes, and what is the type of a value?

/// Replaces every bare `NaN`, `Infinity` and `-Infinity` by a fraction of the same length, which is neither a text nor
/// an id; `None` if there are none.
pub(super) fn replace_non_numbers(line: &str) -> Option<String> {
    if memchr::memmem::find(line.as_bytes(), b"NaN").is_none()
        && memchr::memmem::find(line.as_bytes(), b"Infinity").is_none()
    {
        return None;
    }
    let bytes = line.as_bytes();
    let mut out = String::with_capacity(line.len());
    let mut copied = 0;
    let mut i = 0;
    let mut in_string = false;
    while i < bytes.len() {
        match bytes[i] {
            b'"' => in_string = !in_string,
            b'\\' if in_string => i += 1,
            b'N' | b'I' if !in_string => {
                let name = if bytes[i] == b'N' { "NaN" } else { "Infinity" };
                if line[i..].starts_with(name) && stands_alone(bytes, i, i + name.len()) {
                    out.push_str(&line[copied..i]);
                    out.push_str(&"0.0000000"[..name.len()]);
                    copied = i + name.len();
                    i = copied;
                    continue;
                }
            }
            _ => {}
        }
        i += 1;
    }
    if copied == 0 {
        return None;
    }
    out.push_str(&line[copied..]);
    Some(out)
}

/// Whether `bytes[from..to]` is a complete value, apart from one minus sign before it.
fn stands_alone(bytes: &[u8], from: usize, to: usize) -> bool {
    let mut before = &bytes[..from];
    if let [rest @ .., b'-'] = before {
        before = rest;
    }
    let starts = matches!(
        before.last(),
        None | Some(b':' | b',' | b'[' | b' ' | b'\t' | b'\r')
    );
    let ends = matches!(
        bytes.get(to),
        None | Some(b',' | b']' | b'}' | b' ' | b'\t' | b'\r')
    );
    starts && ends
}

/// Names the type of a valid JSON value, for people.
pub(super) fn type_of(raw: &str) -> &'static str {
    match raw.as_bytes().first() {
        Some(b'{') => "an object",
        Some(b'[') => "a list",
        Some(b'"') => "a string",
        Some(b't' | b'f') => "a boolean",
        Some(b'n') => "null",
        Some(b'N') => "NaN",
        Some(b'I') => "Infinity",
        Some(b'-') if raw.as_bytes().get(1) == Some(&b'I') => "-Infinity",
        _ => match raw.contains(['.', 'e', 'E']) {
            true => "a number with a fraction or exponent",
            false => "a number",
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_bare_words_are_replaced_and_positions_stay() {
        let line = r#"{"a": NaN, "NaN\"": "Infinity NaN", "b": [-Infinity,Infinity]}"#;
        let replaced = replace_non_numbers(line).unwrap();
        assert_eq!(
            replaced,
            r#"{"a": 0.0, "NaN\"": "Infinity NaN", "b": [-0.000000,0.000000]}"#
        );
        for other in [
            r#"{"a": 1NaN}"#,
            r#"{"a": NaNs}"#,
            r#"{"a": "NaN"}"#,
            "{}",
            "é NaNé",
        ] {
            assert_eq!(replace_non_numbers(other), None, "{other}");
        }
    }
}
