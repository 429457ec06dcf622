//! Which fields of a row are requested?

use crate::error::{Error, Result};
use likewise_core::error::invalid_if;

#[derive(Debug, Clone, PartialEq)]
pub struct JsonlRules {
    /// Fields that hold the text; several are joined by a newline in this order. `a.b` is field `b` of the object in
    /// field `a`; `a[].b` is field `b` of each object in the list `a`, and `a[]` each item of that list.
    pub text_fields: Vec<String>,
    pub id_field: Option<String>,
    /// Whether a row without an id is bad.
    pub id_required: bool,
    pub fields: Vec<String>,
    /// If set, the only text field holds a list of tokens, which is read by these rules.
    pub tokens: Option<TokenRules>,
    /// Then, how the text of a row is read whose list of tokens is empty; it has none if these rules reject the row.
    pub text_without_tokens: Option<Box<JsonlRules>>,
    /// Which items of lists count as text.
    pub roles: RoleRules,
    /// Longest line, in bytes; a longer one is a bad row. At most 4 GiB - 1.
    pub max_document: u64,
}

/// Which items of a list count, by their field `role` or, if they have none, `from`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RoleRules {
    /// Roles in lower case.
    pub names: Vec<String>,
    /// Whether only these count; otherwise, all but these.
    pub are_counted: bool,
}

impl RoleRules {
    /// Whether an item with this role counts.
    pub(super) fn count(&self, role: Option<&str>) -> bool {
        let named = role.and_then(|role| {
            let mut names = self.names.iter();
            names.find(|name| name.eq_ignore_ascii_case(role))
        });
        named.is_some() == self.are_counted
    }
}

/// A step from a value to the texts in it.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Step {
    /// To each item of a list.
    Items,
    /// To a field of an object.
    Key(Vec<u8>),
}

/// Splits a path at its first list: the field that holds it, and the steps from there.
pub(super) fn split_path(path: &str) -> (&str, Vec<Step>) {
    let Some((field, mut rest)) = path.split_once("[]") else {
        return (path, Vec::new());
    };
    let mut steps = vec![Step::Items];
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix("[]") {
            steps.push(Step::Items);
            rest = after;
            continue;
        }
        rest = rest.strip_prefix('.').unwrap_or(rest);
        let end = rest.find(['.', '[']).unwrap_or(rest.len());
        let (key, after) = rest.split_at(end.max(1).min(rest.len()));
        steps.push(Step::Key(key.as_bytes().to_vec()));
        rest = after;
    }
    (field, steps)
}

/// How a list of tokens is read.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TokenRules {
    /// Whether each entry is a pair of a token and its weight.
    pub are_weighted: bool,
    /// Factor for real weights before rounding; if absent, weights are whole numbers.
    pub scale: Option<f64>,
}

/// The requested fields as a tree of keys.
#[derive(Debug, Default)]
pub(crate) struct Node {
    pub children: Vec<Child>,
}

/// A requested key of an object, and the uses of its value.
#[derive(Debug, Default)]
pub(crate) struct Child {
    pub key: Vec<u8>,
    /// Indexes of this value among the text fields.
    pub texts: Vec<usize>,
    pub is_id: bool,
    /// Indexes of this value among the further fields.
    pub fields: Vec<usize>,
    pub nested: Node,
}

impl Child {
    /// Whether only fields inside the value are requested.
    pub fn is_only_nested(&self) -> bool {
        self.texts.is_empty() && !self.is_id && self.fields.is_empty()
    }
}

impl JsonlRules {
    /// Checks the rules: a text field is named, at most one holds tokens, `max_document` is in range.
    pub fn check(&self) -> Result<()> {
        self.tree().map(|_| ())
    }

    /// Checks the rules and builds the tree of keys.
    pub(crate) fn tree(&self) -> Result<Node> {
        invalid_if(
            self.text_fields.is_empty(),
            "text_fields",
            || "no field is named; name at least one",
        )?;
        if self.tokens.is_some() && self.text_fields.len() > 1 {
            return Err(Error::invalid("text_fields", "one field holds the tokens"));
        }
        invalid_if(
            self.max_document == 0 || self.max_document > u64::from(u32::MAX),
            "max_document",
            || format!("{} is outside 1..{}", self.max_document, u32::MAX),
        )?;
        let mut root = Node::default();
        for (i, path) in self.text_fields.iter().enumerate() {
            root.child(split_path(path).0).texts.push(i);
        }
        if let Some(path) = &self.id_field {
            root.child(path).is_id = true;
        }
        for (i, path) in self.fields.iter().enumerate() {
            root.child(path).fields.push(i);
        }
        Ok(root)
    }
}

impl Node {
    /// Returns the child at a dotted path, creating it if it does not exist.
    fn child(&mut self, path: &str) -> &mut Child {
        let (key, rest) = match path.split_once('.') {
            Some((key, rest)) => (key, Some(rest)),
            None => (path, None),
        };
        let at = match self.find(key.as_bytes()) {
            Some(at) => at,
            None => {
                self.children.push(Child {
                    key: key.as_bytes().to_vec(),
                    ..Child::default()
                });
                self.children.len() - 1
            }
        };
        match rest {
            Some(rest) => self.children[at].nested.child(rest),
            None => &mut self.children[at],
        }
    }

    #[inline]
    pub fn find(&self, key: &[u8]) -> Option<usize> {
        self.children.iter().position(|child| child.key == key)
    }
}
