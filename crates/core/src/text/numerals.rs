//! Which numbers does a text contain in Chinese numerals?
//!
//! The definitions page has the rules. A number is surrounded by characters that are not numerals, so its digits never
//! join neighbors that a second pass would read differently.

use std::sync::OnceLock;

use super::utf8;

/// The role of a character in a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Numeral {
    Digit(u64),
    /// 10, 100, 1,000, 10,000 or 100,000,000.
    Unit(u64),
    /// A multiple of ten: 廿 is two tens.
    Tens(u64),
    /// A digit used in amounts of money; most texts contain it in other words.
    MoneyDigit(u64),
    MoneyUnit(u64),
    Two,
    Ascii,
}

/// A part of a run of numerals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Digit(u64),
    Unit(u64),
    /// A run of ASCII digits; `None` if it begins with 0 or is too large.
    Figures(Option<u64>),
}

/// Numbers from here on are left unchanged.
const END: u64 = 10_u64.pow(16);
const TEN_THOUSAND: u64 = 10_000;
const HUNDRED_MILLION: u64 = 100_000_000;

/// Writes the text to `out`, which is cleared first, with its numbers in ASCII digits. Cost: linear.
pub(super) fn read(text: &[u8], out: &mut Vec<u8>) {
    out.clear();
    out.reserve(text.len() + 8);
    let listed = listed();
    let mut parts = Vec::new();
    let (mut at, mut copied, mut end_of_run) = (0, 0, 0);
    let mut earlier = 0;
    while at < text.len() {
        let (c, num_bytes) = utf8::decode(text, at);
        if !is_listed(listed, c) {
            (at, earlier) = (at + num_bytes, c);
            continue;
        }
        let (start, before) = (at, to_char(earlier));
        parts.clear();
        while let Some(numeral) = numeral_at(text, at, to_char(earlier), at > start) {
            earlier = utf8::decode(text, at).0;
            at = push(text, at, numeral, &mut parts);
        }
        if at > start {
            let is_read = push_number(text, (start, at), before, &parts, |digits| {
                out.extend_from_slice(&text[copied..start]);
                out.extend_from_slice(digits);
            });
            if is_read {
                copied = at;
            }
            end_of_run = at;
            continue;
        }
        (at, earlier) = (at + num_bytes, c);
        let is_first = start == 0 || start != end_of_run;
        if is_first && classify(to_char(c)) == Some(Numeral::Two) && is_counter_at(text, at) {
            out.extend_from_slice(&text[copied..start]);
            out.push(b'2');
            copied = at;
        }
    }
    out.extend_from_slice(&text[copied..]);
}

/// A bit for each scalar below 2^16 that may be a numeral.
type Listed = [u64; 1024];

/// Returns the table, which the first call builds in less than a millisecond.
fn listed() -> &'static Listed {
    static LISTED: OnceLock<Box<Listed>> = OnceLock::new();
    LISTED.get_or_init(|| {
        let mut bits = Box::new([0; 1024]);
        for c in 0..=0xFFFF {
            if classify(to_char(c)).is_some() {
                bits[c as usize / 64] |= 1 << (c % 64);
            }
        }
        bits
    })
}

fn is_listed(listed: &Listed, c: u32) -> bool {
    let word = listed.get(c as usize / 64).copied().unwrap_or_default();
    word >> (c % 64) & 1 == 1
}

fn to_char(c: u32) -> char {
    char::from_u32(c).unwrap_or('\0')
}

fn char_at(text: &[u8], at: usize) -> (char, usize) {
    let (c, num_bytes) = utf8::decode(text, at);
    (to_char(c), num_bytes)
}

/// Returns the numeral at which a run begins or, with `inside`, continues.
fn numeral_at(text: &[u8], at: usize, earlier: char, inside: bool) -> Option<Numeral> {
    let lead = *text.get(at)?;
    if lead < 0xE2 {
        return lead.is_ascii_digit().then_some(Numeral::Ascii);
    }
    let (c, num_bytes) = char_at(text, at);
    let numeral = classify(c)?;
    let next = || {
        let is_end = at + num_bytes == text.len();
        (!is_end).then(|| char_at(text, at + num_bytes).0)
    };
    let is_numeral = match numeral {
        Numeral::MoneyUnit(_) => inside,
        Numeral::MoneyDigit(_) => {
            matches!(earlier, '拾' | '佰' | '仟' | '零')
                || matches!(next(), Some('拾' | '佰' | '仟' | '万' | '萬' | '亿' | '億'))
        }
        Numeral::Two => matches!(
            next(),
            Some('百' | '千' | '佰' | '仟' | '万' | '萬' | '亿' | '億')
        ),
        _ => true,
    };
    is_numeral.then_some(numeral)
}

fn classify(c: char) -> Option<Numeral> {
    Some(match c {
        '0'..='9' => Numeral::Ascii,
        '〇' | '零' | '○' => Numeral::Digit(0),
        '一' => Numeral::Digit(1),
        '二' => Numeral::Digit(2),
        '三' => Numeral::Digit(3),
        '四' => Numeral::Digit(4),
        '五' => Numeral::Digit(5),
        '六' => Numeral::Digit(6),
        '七' => Numeral::Digit(7),
        '八' => Numeral::Digit(8),
        '九' => Numeral::Digit(9),
        '十' => Numeral::Unit(10),
        '百' => Numeral::Unit(100),
        '千' => Numeral::Unit(1000),
        '万' | '萬' => Numeral::Unit(TEN_THOUSAND),
        '亿' | '億' => Numeral::Unit(HUNDRED_MILLION),
        '廿' | '卄' => Numeral::Tens(2),
        '卅' => Numeral::Tens(3),
        '卌' => Numeral::Tens(4),
        '两' | '兩' => Numeral::Two,
        '壹' => Numeral::MoneyDigit(1),
        '贰' | '貳' => Numeral::MoneyDigit(2),
        '叁' | '叄' | '参' | '參' => Numeral::MoneyDigit(3),
        '肆' => Numeral::MoneyDigit(4),
        '伍' => Numeral::MoneyDigit(5),
        '陆' | '陸' => Numeral::MoneyDigit(6),
        '柒' => Numeral::MoneyDigit(7),
        '捌' => Numeral::MoneyDigit(8),
        '玖' => Numeral::MoneyDigit(9),
        '拾' => Numeral::MoneyUnit(10),
        '佰' => Numeral::MoneyUnit(100),
        '仟' => Numeral::MoneyUnit(1000),
        _ => return None,
    })
}

/// Adds the parts of the numeral at a position; returns its end.
fn push(text: &[u8], at: usize, numeral: Numeral, parts: &mut Vec<Part>) -> usize {
    match numeral {
        Numeral::Ascii => {
            let rest = &text[at..];
            let is_digit = |byte: &&u8| byte.is_ascii_digit();
            let figures = &rest[..rest.iter().take_while(is_digit).count()];
            parts.push(Part::Figures(value_of_figures(figures)));
            return at + figures.len();
        }
        Numeral::Digit(digit) | Numeral::MoneyDigit(digit) => parts.push(Part::Digit(digit)),
        Numeral::Two => parts.push(Part::Digit(2)),
        Numeral::Unit(unit) | Numeral::MoneyUnit(unit) => parts.push(Part::Unit(unit)),
        Numeral::Tens(digit) => parts.extend([Part::Digit(digit), Part::Unit(10)]),
    }
    at + char_at(text, at).1
}

fn value_of_figures(figures: &[u8]) -> Option<u64> {
    if figures[0] == b'0' {
        return None;
    }
    std::str::from_utf8(figures)
        .ok()?
        .parse()
        .ok()
        .filter(|&value| value < END)
}

/// Passes the digits of a run to `take`; returns false if the run is left unchanged.
fn push_number(
    text: &[u8],
    (start, end): (usize, usize),
    before: char,
    parts: &[Part],
    take: impl FnOnce(&[u8]),
) -> bool {
    let is_rest_of_decimal = text[start].is_ascii_digit()
        && matches!(before, '.' | ',')
        && start > 1
        && text[start - 2].is_ascii_digit();
    let value = match *parts {
        [Part::Figures(_)] => None,
        [Part::Digit(digit)] if is_plain_at(text, start) && is_counted(text, before, end) => {
            Some(digit).filter(|&digit| digit > 0)
        }
        [Part::Unit(10)] if is_counted(text, before, end) => Some(10),
        [_] => None,
        _ if is_positional(parts) => {
            let digits: Vec<u8> = parts.iter().filter_map(ascii_digit).collect();
            take(&digits);
            return true;
        }
        _ => number(parts).filter(|_| !is_rest_of_decimal),
    };
    let Some(value) = value.filter(|&value| value < END) else {
        return false;
    };
    take(value.to_string().as_bytes());
    true
}

/// Whether a single digit here can be a number, which digits of money cannot.
fn is_plain_at(text: &[u8], at: usize) -> bool {
    matches!(classify(char_at(text, at).0), Some(Numeral::Digit(_)))
}

/// Whether the context of a single numeral shows that it is a number.
fn is_counted(text: &[u8], before: char, end: usize) -> bool {
    before == '第' || is_counter_at(text, end)
}

/// Whether a text continues with something that is counted.
fn is_counter_at(text: &[u8], at: usize) -> bool {
    if at == text.len() {
        return false;
    }
    let (c, num_bytes) = char_at(text, at);
    let before = |seconds: &[char]| {
        at + num_bytes < text.len() && seconds.contains(&char_at(text, at + num_bytes).0)
    };
    match c {
        '分' => before(&['钟', '鐘']),
        '小' => before(&['时', '時']),
        '公' => before(&['里', '斤']),
        '年' | '月' | '日' | '号' | '號' | '天' | '周' | '週' | '岁' | '歲' | '时' | '時'
        | '点' | '點' | '秒' | '个' | '個' | '名' | '位' | '人' | '次' | '种' | '種' | '项'
        | '項' | '条' | '條' | '家' | '件' | '只' | '隻' | '张' | '張' | '本' | '台' | '辆'
        | '輛' | '座' | '部' | '层' | '層' | '楼' | '樓' | '篇' | '页' | '頁' | '章' | '节'
        | '節' | '级' | '級' | '届' | '屆' | '期' | '倍' | '元' | '块' | '塊' | '米' | '吨'
        | '噸' | '斤' | '克' => true,
        _ => false,
    }
}

/// Whether a run lists digits: 二〇二六. Two digits without a zero are often two numbers: 五六个.
fn is_positional(parts: &[Part]) -> bool {
    let is_digit = |part: &Part| matches!(part, Part::Digit(_));
    let has_zero = parts.contains(&Part::Digit(0));
    parts.iter().all(is_digit)
        && parts[0] != Part::Digit(0)
        && (parts.len() > 2 || parts.len() == 2 && has_zero)
}

fn ascii_digit(part: &Part) -> Option<u8> {
    match part {
        Part::Digit(digit) => Some(b'0' + *digit as u8),
        _ => None,
    }
}

/// Returns the number formed by parts with units in descending order, split at the largest unit, or `None`.
fn number(parts: &[Part]) -> Option<u64> {
    let units = parts.iter().filter_map(|part| match part {
        Part::Unit(unit) => Some(*unit),
        _ => None,
    });
    let Some(unit) = units.max() else {
        return match *parts {
            [Part::Digit(digit)] if digit > 0 => Some(digit),
            [Part::Figures(value)] => value,
            _ => None,
        };
    };
    let mut sides = parts.split(|&part| part == Part::Unit(unit));
    let (Some(left), Some(right), None) = (sides.next(), sides.next(), sides.next()) else {
        return None;
    };
    let coefficient = match left {
        [] if unit == 10 => 1,
        _ if unit >= TEN_THOUSAND => number(left)?,
        [_] => number(left).filter(|&value| value < 10)?,
        _ => return None,
    };
    if unit == 10 && matches!(left, [Part::Figures(_)]) {
        return None;
    }
    let rest = match right {
        [] => 0,
        [Part::Digit(0), after @ ..] => number(after)?,
        // 三百五 is 350.
        [_] if unit > 10 => match number(right)? {
            value @ ..10 => value * unit / 10,
            value => value,
        },
        _ => number(right)?,
    };
    if rest >= unit {
        return None;
    }
    coefficient.checked_mul(unit)?.checked_add(rest)
}
