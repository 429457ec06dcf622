//! Which parts of a normalized text are addresses of the web?

const BEGINNINGS: [&[u8]; 3] = [b"https://", b"http://", b"www."];

/// Appends a text to `out`, with the word `url` between spaces in place of each address.
pub(super) fn replace(text: &[u8], out: &mut Vec<u8>) {
    let mut at = 0;
    while at < text.len() {
        let is_inside = at > 0 && text[at - 1].is_ascii_alphanumeric();
        // Only where an address may begin, so that the time is linear.
        let num_bytes = if is_inside {
            0
        } else {
            address_bytes(&text[at..]).unwrap_or(0)
        };
        out.extend_from_slice(if num_bytes > 0 {
            b" url "
        } else {
            &text[at..=at]
        });
        at += num_bytes.max(1);
    }
}

/// Returns the length of the address at the start of a text: characters of RFC 3986, without marks at the end.
fn address_bytes(text: &[u8]) -> Option<usize> {
    let beginning = BEGINNINGS.iter().find(|&&one| text.starts_with(one))?;
    let is_own = |b: &&u8| b.is_ascii_alphanumeric() || b"-._~:/?#[]@!$&'()*+,;=%".contains(b);
    let num_bytes = text.iter().take_while(is_own).count();
    let is_after = |b: &&u8| b".,:;!?'()[]*".contains(b);
    let num_bytes = num_bytes - text[..num_bytes].iter().rev().take_while(is_after).count();
    (num_bytes > beginning.len()).then_some(num_bytes)
}
