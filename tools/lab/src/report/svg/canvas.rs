//! The few shapes that the charts are made of. Colours are classes: the style decides, by light and dark.

use super::COLOURS;
use std::fmt::Write as _;

/// An SVG being written.
#[derive(Debug)]
pub(super) struct SvgCanvas {
    width: f64,
    height: f64,
    body: String,
}

/// Anchor of a text.
#[derive(Debug, Clone, Copy)]
pub(super) enum TextAnchor {
    Start,
    Middle,
    End,
}

/// Returns the class of a series' colour.
pub(super) fn colour(series: usize) -> String {
    format!("s{}", series % COLOURS)
}

/// Escapes text for XML.
pub(in crate::report) fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            // XML knows no other control characters, not even escaped.
            c if c.is_control() && !matches!(c, '\t' | '\n' | '\r') => safe.push('\u{fffd}'),
            c => safe.push(c),
        }
    }
    safe
}

impl SvgCanvas {
    pub(super) fn new(width: f64, height: f64) -> Self {
        Self {
            width,
            height,
            body: String::new(),
        }
    }

    // Writing to a string does not fail.

    pub(super) fn line(&mut self, from: (f64, f64), to: (f64, f64), class: &str) {
        let _ = write!(
            self.body,
            "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" class=\"{class}\"/>",
            from.0, from.1, to.0, to.1
        );
    }

    /// Draws a dot that shows its value under a pointer.
    pub(super) fn dot(&mut self, at: (f64, f64), radius: f64, class: &str, tip: &str) {
        let _ = write!(
            self.body,
            "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"{radius}\" class=\"{class}\">{}</circle>",
            at.0,
            at.1,
            tooltip(tip)
        );
    }

    pub(super) fn rect(&mut self, at: (f64, f64), size: (f64, f64), class: &str, tip: &str) {
        let _ = write!(
            self.body,
            "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" class=\"{class}\">{}</rect>",
            at.0,
            at.1,
            size.0,
            size.1,
            tooltip(tip)
        );
    }

    pub(super) fn path(&mut self, points: &[(f64, f64)], class: &str) {
        let mut data = String::new();
        for (at, (x, y)) in points.iter().enumerate() {
            let _ = write!(data, "{}{x:.1} {y:.1}", if at == 0 { "M" } else { "L" });
        }
        let _ = write!(self.body, "<path d=\"{data}\" class=\"{class}\"/>");
    }

    pub(super) fn text(&mut self, at: (f64, f64), anchor: TextAnchor, class: &str, text: &str) {
        let anchor = match anchor {
            TextAnchor::Start => "start",
            TextAnchor::Middle => "middle",
            TextAnchor::End => "end",
        };
        let _ = write!(
            self.body,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\" class=\"{class}\">{}</text>",
            at.0,
            at.1,
            escape(text)
        );
    }

    /// Returns the whole drawing, with words for who cannot see it.
    pub(super) fn finish(self, title: &str) -> String {
        format!(
            "<svg viewBox=\"0 0 {:.0} {:.0}\" width=\"{:.0}\" height=\"{:.0}\" role=\"img\" aria-label=\"{}\">{}</svg>",
            self.width,
            self.height,
            self.width,
            self.height,
            escape(title),
            self.body
        )
    }
}

fn tooltip(tip: &str) -> String {
    if tip.is_empty() {
        return String::new();
    }
    format!("<title>{}</title>", escape(tip))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_arms_cannot_become_markup() {
        assert_eq!(
            escape("<b onload=\"x\">&\u{1}"),
            "&lt;b onload=&quot;x&quot;&gt;&amp;\u{fffd}"
        );
        let mut canvas = SvgCanvas::new(10.0, 10.0);
        canvas.text((1.0, 2.0), TextAnchor::Start, "label", "</svg><script>");
        assert!(!canvas.finish("a\"b").contains("<script"));
    }
}
