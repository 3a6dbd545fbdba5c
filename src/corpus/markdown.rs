//! What only markdown knows: the title.

use pulldown_cmark::{Event, MetadataBlockKind, Parser, Tag, TagEnd};

use crate::text;

/// The text of the first heading that has any, `#` or underlined; without one, the `title:` of
/// the front matter. A comment in a code block is no heading.
pub(super) fn title(markdown: &str) -> Option<String> {
    let mut heading: Option<String> = None;
    let mut in_front_matter = false;
    let mut front_title = None;
    for event in Parser::new_ext(markdown, text::MARKDOWN) {
        match event {
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::End(TagEnd::Heading(_)) => {
                let title = heading.take().map(|heading| text::plain(&heading));
                if let Some(title) = title.filter(|title| !title.is_empty()) {
                    return Some(title);
                }
            }
            Event::Start(Tag::MetadataBlock(MetadataBlockKind::YamlStyle)) => {
                in_front_matter = true;
            }
            Event::End(TagEnd::MetadataBlock(_)) => in_front_matter = false,
            Event::Text(front) if in_front_matter => front_title = yaml_title(&front),
            Event::Text(part) | Event::Code(part) => {
                if let Some(heading) = &mut heading {
                    heading.push_str(&part);
                }
            }
            Event::SoftBreak | Event::HardBreak => {
                if let Some(heading) = &mut heading {
                    heading.push(' ');
                }
            }
            _ => {}
        }
    }
    front_title
}

fn yaml_title(front_matter: &str) -> Option<String> {
    let value = front_matter.lines().find_map(|line| line.strip_prefix("title:"))?;
    let title = text::plain(value.trim().trim_matches(['"', '\'']));
    (!title.is_empty()).then_some(title)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(markdown: &str, expected: Option<&str>) {
        assert_eq!(title(markdown).as_deref(), expected);
    }

    #[test]
    fn the_first_real_heading_wins() {
        check("text\n# **Verbs** and `code` [link](x.md)\n# Two", Some("Verbs and code link"));
        check("Irregular\nverbs\n=====\n", Some("Irregular verbs"));
        check("```sh\n# comment\n```\n~~~\n# more\n~~~\n    # indented\n\n## Real", Some("Real"));
        check("#\n\n## Second", Some("Second"));
        check("# Modal verbs {#modals .wide}\n", Some("Modal verbs"));
        check("no heading, #hashtag", None);
        check("", None);
    }

    #[test]
    fn front_matter_is_no_heading_but_may_name_the_title() {
        check("---\ntitle: \"Modal verbs\"\ntags: x\n---\n\nText.", Some("Modal verbs"));
        check("---\ntitle: Front\n---\n\n# Heading", Some("Heading"));
    }
}
