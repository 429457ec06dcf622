//! Which parts of a normalized text are addresses of the web?

/// What an address begins with.
const BEGINNINGS: [&[u8]; 3] = [b"https://", b"http://", b"www."];
/// Marks that end a sentence or close a bracket, if an address ends with them.
const AFTER: &[u8] = b".,:;!?'()[]*";

/// Appends a text to `out`, with the word `url` between spaces in place of each address.
pub(super) fn replace(text: &[u8], out: &mut Vec<u8>) {
    let mut at = 0;
    while at < text.len() {
        let is_inside = at > 0 && text[at - 1].is_ascii_alphanumeric();
        let num_bytes = if is_inside {
            0
        } else {
            address_bytes(&text[at..])
        };
        if num_bytes == 0 {
            out.push(text[at]);
            at += 1;
        } else {
            out.extend_from_slice(b" url ");
            at += num_bytes;
        }
    }
}

/// Returns the length of the address at the start of a text, 0 if none is there.
fn address_bytes(text: &[u8]) -> usize {
    let Some(beginning) = BEGINNINGS.iter().find(|&&one| text.starts_with(one)) else {
        return 0;
    };
    let is_end = |&byte: &u8| !is_of_address(byte);
    let num_bytes = text.iter().position(is_end).unwrap_or(text.len());
    let num_after = text[..num_bytes]
        .iter()
        .rev()
        .take_while(|byte| AFTER.contains(byte))
        .count();
    let num_bytes = num_bytes - num_after;
    if num_bytes > beginning.len() {
        num_bytes
    } else {
        0
    }
}

/// Whether a character occurs in addresses (RFC 3986).
fn is_of_address(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~:/?#[]@!$&'()*+,;=%".contains(&byte)
}
