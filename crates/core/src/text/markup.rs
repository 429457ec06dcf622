//! What is the visible text of an HTML page?
//!
//! The tokenizer of the WHATWG standard, from the html5gum crate: no tree is built and nothing recurses, so that time
//! is linear and memory a few times the size of the page, whatever it contains.

use std::convert::Infallible;

use html5gum::emitters::callback::{CallbackEmitter, CallbackEvent};
use html5gum::{Span, Tokenizer};

/// The library that reads HTML, and its version.
pub const MARKUP_LIBRARY: &str = "html5gum 0.9.0";

/// Replaces `out` by the visible text of a page, without [`HIDDEN`] elements. Whitespace becomes one space, except in
/// `pre` and `textarea`; [`BLOCKS`] are separated by a blank line, [`LINES`] by a line end, [`CELLS`] by a space.
pub(crate) fn strip_html(page: &str, out: &mut String) {
    out.clear();
    let mut text = Vec::with_capacity(page.len());
    let mut reader = Reader {
        text: &mut text,
        hidden: None,
        num_hidden: 0,
        num_preserved: 0,
    };
    let mut emitter = CallbackEmitter::new(|event: CallbackEvent<'_>, _: Span<()>| {
        reader.take(event);
        None::<Infallible>
    });
    emitter.naively_switch_states(true);
    // The tokenizer yields nothing: all output goes to the emitter.
    Tokenizer::new_with_emitter(page, emitter).for_each(drop);
    match String::from_utf8(text) {
        Ok(text) => *out = text,
        // A page is well-formed UTF-8 and is cut only at ASCII; if that should ever fail, the text is repaired.
        Err(error) => out.push_str(&String::from_utf8_lossy(error.as_bytes())),
    }
}

/// Elements whose content is not part of the visible text.
const HIDDEN: [&[u8]; 7] = [
    b"script",
    b"style",
    b"template",
    b"noscript",
    b"iframe",
    b"noembed",
    b"noframes",
];
/// Elements whose whitespace is significant.
const PRESERVED: [&[u8]; 2] = [b"pre", b"textarea"];
/// Elements that are separated by a blank line.
const BLOCKS: [&[u8]; 30] = [
    b"address",
    b"article",
    b"aside",
    b"blockquote",
    b"body",
    b"details",
    b"dialog",
    b"div",
    b"dl",
    b"fieldset",
    b"figure",
    b"footer",
    b"form",
    b"h1",
    b"h2",
    b"h3",
    b"h4",
    b"h5",
    b"h6",
    b"header",
    b"hr",
    b"main",
    b"nav",
    b"ol",
    b"p",
    b"pre",
    b"section",
    b"table",
    b"title",
    b"ul",
];
/// Elements that are on separate lines.
const LINES: [&[u8]; 12] = [
    b"br",
    b"caption",
    b"dd",
    b"dt",
    b"figcaption",
    b"legend",
    b"li",
    b"option",
    b"summary",
    b"textarea",
    b"tr",
    b"optgroup",
];
/// Elements that are separated by a space.
const CELLS: [&[u8]; 2] = [b"td", b"th"];

struct Reader<'a> {
    text: &'a mut Vec<u8>,
    /// The outermost open hidden element, and how many elements of that name are open.
    hidden: Option<&'static [u8]>,
    num_hidden: usize,
    num_preserved: usize,
}

impl Reader<'_> {
    fn take(&mut self, event: CallbackEvent<'_>) {
        match event {
            CallbackEvent::String { value } if self.hidden.is_none() => {
                if self.num_preserved > 0 {
                    self.text.extend_from_slice(value);
                } else {
                    let one_line = |&byte: &u8| match byte {
                        b'\t' | b'\n' | b'\x0C' | b'\r' => b' ',
                        byte => byte,
                    };
                    self.text.extend(value.iter().map(one_line));
                }
            }
            CallbackEvent::OpenStartTag { name } => self.tag(name, true),
            CallbackEvent::EndTag { name } => self.tag(name, false),
            _ => {}
        }
    }

    fn tag(&mut self, name: &[u8], opens: bool) {
        if let Some(hidden) = self.hidden {
            if hidden == name {
                self.num_hidden = match opens {
                    true => self.num_hidden + 1,
                    false => self.num_hidden - 1,
                };
                if self.num_hidden == 0 {
                    self.hidden = None;
                }
            }
            return;
        }
        if let Some(hidden) = HIDDEN.into_iter().find(|&hidden| hidden == name) {
            if opens {
                (self.hidden, self.num_hidden) = (Some(hidden), 1);
            }
            return;
        }
        if PRESERVED.contains(&name) {
            self.num_preserved = match opens {
                true => self.num_preserved + 1,
                false => self.num_preserved.saturating_sub(1),
            };
        }
        let apart: &[u8] = match () {
            () if BLOCKS.contains(&name) => b"\n\n",
            () if LINES.contains(&name) => b"\n",
            () if CELLS.contains(&name) => b" ",
            () => b"",
        };
        let stands_apart = match apart {
            b" " => self.text.last().is_some_and(u8::is_ascii_whitespace),
            apart => self.text.ends_with(apart),
        };
        if !self.text.is_empty() && !stands_apart {
            self.text.extend_from_slice(apart);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn visible(page: &str) -> String {
        let mut out = String::from("what was there before");
        strip_html(page, &mut out);
        out
    }

    #[test]
    fn text_is_what_a_reader_sees() {
        let page = "<!DOCTYPE html><html><head><title>A &amp; B</title><style>p { x: '</p>' }</style>\
            <script>if (a < b) { '<p>' }</script></head><body><p class='x>y'>one\n<b>t</b>wo<!-- no --></p>\
            <ul><li>&eacute;&#x732b;<li>2</ul><noscript>no</noscript><pre>a\n  b</pre><table><tr><td>x<td>y</table>";
        assert_eq!(
            visible(page),
            "A & B\n\none two\n\n\u{e9}\u{732b}\n2\n\na\n  b\n\nx y\n\n"
        );
    }

    #[test]
    fn what_is_no_markup_stays() {
        assert_eq!(visible("a < b && c > d"), "a < b && c > d");
        assert_eq!(
            visible("&#0;&#xD800;&bogus;&amp"),
            "\u{fffd}\u{fffd}&bogus;&"
        );
        assert_eq!(
            visible("<template><p>x<template>y</template>z</template>w"),
            "w"
        );
        assert_eq!(visible("a<script>b"), "a");
        assert_eq!(visible("</script>a</pre>b"), "a\n\nb");
    }

    #[test]
    fn hostile_pages_take_linear_space() {
        for piece in [
            "<",
            "<!--",
            "&",
            "<a a a ",
            "<div>",
            "</",
            "<script>",
            "<template>",
            "&#x",
            "<![CDATA[",
            "\0",
            "<pre>",
        ] {
            let page = piece.repeat(100_000);
            assert!(visible(&page).len() <= 3 * page.len() + 8, "{piece}");
        }
    }
}
