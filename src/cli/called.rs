//! The definition of the arguments, in the name by which the person called this program.

use clap::{Command, CommandFactory as _};

use super::{Cli, program};

/// What usage, examples and prose call this program.
const NAME: &str = "kubectl maint";
const FILE: &str = "kubectl-maint";
const COMPLETER: &str = "kubectl_complete-maint";

/// The definition for a program that is called `name`, such as `kubectl maint`.
pub(crate) fn definition(name: &str) -> Command {
    let command = Cli::command().name(FILE).bin_name(name);
    if name == NAME {
        return command;
    }
    let mut written = command.clone();
    written.build();
    let last = command.get_after_help().map(ToString::to_string);
    let command = command.after_help(last.unwrap_or_default().replace(NAME, name));
    command.mut_subcommands(|verb| {
        let usage = written.find_subcommand_mut(verb.get_name());
        let usage = usage.map(|verb| verb.render_usage().to_string());
        in_name(verb, &usage.unwrap_or_default(), name)
    })
}

/// `verb`, whose `usage` and other texts have the program's usual name, in this one.
fn in_name(mut verb: Command, usage: &str, name: &str) -> Command {
    if let Some(own) = usage
        .strip_prefix("Usage: ")
        .filter(|own| own.contains(NAME))
    {
        verb = verb.override_usage(own.replace(NAME, name));
    }
    if let Some(examples) = verb.get_after_help().map(ToString::to_string) {
        verb = verb.after_help(examples.replace(NAME, name));
    }
    if let Some(about) = verb.get_about().map(ToString::to_string) {
        verb = verb.about(prose(&about, name));
    }
    if let Some(about) = verb.get_long_about().map(ToString::to_string) {
        verb = verb.long_about(prose(&about, name));
    }
    verb
}

/// Prose also tells of files, and of what kubectl does with plugins alone.
fn prose(text: &str, name: &str) -> String {
    let file = program::file(name);
    let text = match file.strip_prefix("kubectl-") {
        Some(plugin) => text
            .replace(NAME, name)
            .replace(COMPLETER, &format!("kubectl_complete-{plugin}")),
        None => text.to_owned(),
    };
    text.replace(FILE, &file)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The whole help of `verb` of a program that is called `name`.
    fn help(name: &str, verb: &str) -> String {
        let mut command = definition(name);
        command.build();
        let verb = command.find_subcommand_mut(verb).expect("a verb");
        verb.render_long_help().to_string()
    }

    #[test]
    fn no_verb_has_another_name_than_the_one_it_was_called_by() {
        for verb in Cli::command().get_subcommands() {
            let help = help("kubectl mx", verb.get_name());
            let usage = format!("Usage: kubectl mx {}", verb.get_name());
            assert!(help.contains(&usage), "{help}");
            for other in [NAME, COMPLETER] {
                assert!(!help.contains(other), "{help}");
            }
        }
    }

    #[test]
    fn usage_of_several_lines_keeps_its_form() {
        assert!(help("kubectl mx", "fence").contains(
            "Usage: kubectl mx fence [OPTIONS] NODE --powered-off=HOW\n       \
                 kubectl mx fence [OPTIONS] NODE -- HOOK [ARGUMENT]...\n"
        ));
    }

    #[test]
    fn completion_tells_of_the_files_of_that_name() {
        let of_plugin = help("kubectl node-lock", "completion");
        let link = "ln -s \"$(command -v kubectl-node_lock)\" \
                    ~/.local/bin/kubectl_complete-node_lock\n";
        assert!(of_plugin.contains(link), "{of_plugin}");
        let of_another = help("maint", "completion");
        for words in [
            "completes `kubectl maint` without the script",
            "ln -s \"$(command -v maint)\" ~/.local/bin/kubectl_complete-maint\n",
            "source <(maint completion bash)",
        ] {
            assert!(of_another.contains(words), "{of_another}");
        }
    }

    #[test]
    fn by_its_usual_name_it_is_as_it_was_written() {
        let mut plain = Cli::command().bin_name(NAME);
        plain.build();
        for verb in plain.get_subcommands_mut() {
            let written = verb.render_long_help().to_string();
            assert_eq!(help(NAME, verb.get_name()), written);
        }
    }
}
