//! A self-contained HTML page. Its content security policy forbids network access and evaluation of
//! strings.

use serde_json::{Value, json};

use super::figure::Figure;

const PLOTLY: &str = include_str!("../../assets/plotly-basic.min.js");
const LICENCE: &str = include_str!("../../assets/LICENSE.plotly");
const SCRIPT: &str = include_str!("page.js");
const STYLE: &str = include_str!("style.css");

/// The content security policy: the page runs its own scripts, and loads nothing.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; \
                      style-src 'unsafe-inline'; img-src data: blob:";

/// The figures of a page that is being written.
#[derive(Debug, Default)]
pub(super) struct Page {
    figures: Vec<Value>,
}

impl Page {
    /// Adds a figure, and returns the HTML for its place in the body.
    pub(super) fn figure(&mut self, f: Figure) -> String {
        let index = self.figures.len();
        self.figures.push(json!({ "data": f.data, "layout": f.layout, "height": f.height }));
        let part = |tag: &str, text: &str| {
            let name = tag.split(' ').next().unwrap_or_default();
            match text.is_empty() {
                true => String::new(),
                false => format!("<{tag}>{}</{name}>\n", escape(text)),
            }
        };
        format!(
            "<figure>\n{}<div data-figure=\"{index}\" role=\"img\" aria-label=\"{}\"></div>\n{}\
             </figure>\n",
            part("figcaption", &f.title),
            escape(&f.alt),
            part("p class=\"note\"", &f.note)
        )
    }

    /// Adds several figures, and returns the HTML for their places.
    pub(super) fn figures(&mut self, figures: impl IntoIterator<Item = Figure>) -> String {
        figures.into_iter().map(|f| self.figure(f)).collect()
    }

    /// The whole page.
    pub(super) fn finish(self, title: &str, body: &str) -> String {
        // The escape prevents a "</script>" in a name from ending the script block.
        let figures = Value::Array(self.figures).to_string().replace('<', "\\u003c");
        format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
             <meta name=\"generator\" content=\"{GENERATOR}\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <title>{}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n{body}\
             <noscript><p class=\"note\">The plots need JavaScript; the tables hold the same \
             figures.</p></noscript>\n\
             </main>\n<script type=\"application/json\" id=\"figures\">{figures}</script>\n\
             <script>\n/*\n{LICENCE}*/\n{PLOTLY}</script>\n<script>\n{SCRIPT}</script>\n\
             </body>\n</html>\n",
            escape(title)
        )
    }
}

/// The program that made a page, as the page says.
const GENERATOR: &str = "thalweg";

/// Whether a file that begins so is a page that thalweg made.
pub fn is_page(head: &[u8]) -> bool {
    let generator = format!("<meta name=\"generator\" content=\"{GENERATOR}\">");
    let head = String::from_utf8_lossy(head);
    head.starts_with("<!doctype html>") && head.contains(&generator)
}

/// A self-contained page with figures that belong to no comparison.
pub fn figures_page(title: &str, figures: Vec<Figure>) -> String {
    let mut page = Page::default();
    let body = format!("<h1>{}</h1>\n{}", escape(title), page.figures(figures));
    page.finish(title, &body)
}

/// Escapes a text for HTML, because names of files and arms may contain any character.
pub(super) fn escape(s: &str) -> String {
    s.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// A table; a column named `note` may wrap.
pub(super) fn table(header: &[String], rows: &[Vec<String>]) -> String {
    let wraps = |i: usize| header.get(i).is_some_and(|h| h == "note" || h == "remark");
    let row = |cells: &[String]| -> String {
        let cell = |(i, c): (usize, &String)| {
            let class = if wraps(i) { " class=\"text\"" } else { "" };
            format!("<td{class}>{}</td>", escape(c))
        };
        cells.iter().enumerate().map(cell).collect()
    };
    let head: String =
        header.iter().map(|h| format!("<th scope=\"col\">{}</th>", escape(h))).collect();
    let body: String = rows.iter().map(|r| format!("<tr>{}</tr>\n", row(r))).collect();
    format!(
        "<div class=\"wide\"><table>\n<thead><tr>{head}</tr></thead>\n\
         <tbody>\n{body}</tbody>\n</table></div>\n"
    )
}

/// A collapsed section. Printing opens it.
pub(super) fn details(title: &str, body: &str) -> String {
    format!("<details>\n<summary>{}</summary>\n{body}</details>\n", escape(title))
}

/// A list under a heading; empty without lines.
pub(super) fn list(title: &str, lines: &[String]) -> String {
    if lines.is_empty() {
        return String::new();
    }
    let items: String = lines.iter().map(|line| format!("<li>{}</li>\n", escape(line))).collect();
    format!("<h3>{}</h3>\n<ul>\n{items}</ul>\n", escape(title))
}

/// A list of names and values.
pub(super) fn definitions(pairs: &[(String, String)]) -> String {
    let body: String = pairs
        .iter()
        .map(|(k, v)| format!("<dt>{}</dt><dd>{}</dd>\n", escape(k), escape(v)))
        .collect();
    format!("<dl>\n{body}</dl>\n")
}
