//! The line editor: prompt, keys, when a statement is whole, and colours.

use std::borrow::Cow;

use asof_client::script::{Piece, Pieces, Script};
use reedline::{
    Color, ColumnarMenu, DefaultHinter, EditCommand, Emacs, FileBackedHistory, Highlighter, KeyCode, KeyModifiers, MenuBuilder, Prompt,
    PromptEditMode, PromptHistorySearch, PromptHistorySearchStatus, Reedline, ReedlineEvent, ReedlineMenu, StyledText, ValidationResult,
    Validator, default_emacs_keybindings,
};

use super::completion::{Names, SqlCompleter, is_keyword};

const MENU: &str = "completion";

/// An editor that knows SQL's words and these names.
pub fn reedline(names: &Names, history: Option<FileBackedHistory>) -> Reedline {
    let mut keys = default_emacs_keybindings();
    let complete = vec![ReedlineEvent::Menu(MENU.into()), ReedlineEvent::MenuNext];
    keys.add_binding(KeyModifiers::NONE, KeyCode::Tab, ReedlineEvent::UntilFound(complete));
    keys.add_binding(KeyModifiers::SHIFT, KeyCode::BackTab, ReedlineEvent::MenuPrevious);
    keys.add_binding(KeyModifiers::ALT, KeyCode::Enter, ReedlineEvent::Edit(vec![EditCommand::InsertNewline]));
    let editor = Reedline::create()
        .with_edit_mode(Box::new(Emacs::new(keys)))
        .with_validator(Box::new(WholeStatements))
        .with_highlighter(Box::new(Colours))
        .with_hinter(Box::new(DefaultHinter::default().with_style(Color::DarkGray.normal())))
        .with_completer(Box::new(SqlCompleter::new(names.clone())))
        .with_quick_completions(true)
        .with_partial_completions(true)
        .with_menu(ReedlineMenu::EngineCompleter(Box::new(ColumnarMenu::default().with_name(MENU))))
        .use_bracketed_paste(true);
    match history {
        Some(history) => editor.with_history(Box::new(history)),
        None => editor,
    }
}

/// Enter sends when all statements are ended by `;`, and a command at once.
struct WholeStatements;

impl Validator for WholeStatements {
    fn validate(&self, text: &str) -> ValidationResult {
        let whole = text.trim_start().starts_with('\\') || Script::cut(text).is_complete();
        if whole { ValidationResult::Complete } else { ValidationResult::Incomplete }
    }
}

/// Keywords, texts, numbers and comments, each in its colour.
struct Colours;

impl Highlighter for Colours {
    fn highlight(&self, line: &str, _cursor: usize) -> StyledText {
        let mut styled = StyledText::new();
        for (piece, range) in Pieces::new(line) {
            let text = line.get(range).unwrap_or_default();
            let style = match piece {
                Piece::Word if is_keyword(text) => Color::Blue.bold(),
                Piece::Text => Color::Green.normal(),
                Piece::Number => Color::Cyan.normal(),
                Piece::Comment => Color::DarkGray.normal(),
                _ => Color::Default.normal(),
            };
            styled.push((style, text.to_owned()));
        }
        styled
    }
}

/// `asof> `, and `   -> ` before further lines.
pub struct ShellPrompt;

impl Prompt for ShellPrompt {
    fn render_prompt_left(&self) -> Cow<'_, str> {
        "asof".into()
    }

    fn render_prompt_right(&self) -> Cow<'_, str> {
        "".into()
    }

    fn render_prompt_indicator(&self, _mode: PromptEditMode) -> Cow<'_, str> {
        "> ".into()
    }

    fn render_prompt_multiline_indicator(&self) -> Cow<'_, str> {
        "   -> ".into()
    }

    fn render_prompt_history_search_indicator(&self, search: PromptHistorySearch) -> Cow<'_, str> {
        let failing = if matches!(search.status, PromptHistorySearchStatus::Failing) { "nothing like " } else { "" };
        format!("({failing}`{}`) ", search.term).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn enter_sends_what_is_whole() {
        let check = |text: &str, whole: bool| {
            assert_eq!(matches!(WholeStatements.validate(text), ValidationResult::Complete), whole, "{text}");
        };
        check("", true);
        check("\\d t", true);
        check("SELECT 1", false);
        check("SELECT 1;", true);
        check("SELECT ';", false);
    }

    #[test]
    fn colours_keep_the_text() {
        let text = "select 'a' -- b";
        let styled = Colours.highlight(text, 0);
        assert_eq!(styled.buffer.iter().map(|(_, piece)| piece.as_str()).collect::<String>(), text);
        assert!(styled.buffer.first().is_some_and(|(style, _)| style.is_bold));
    }
}
