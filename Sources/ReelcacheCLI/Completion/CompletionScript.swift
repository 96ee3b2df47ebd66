import ArgumentParser
import Foundation

/// The completion scripts that shells load. They run `reelcache complete` and pass its answer to the shell. The answer
/// begins with `words`, `files` or `directories`.
enum CompletionScript {
    static func text(for shell: CompletionShell) -> String {
        switch shell {
        case .zsh: zsh
        case .fish: fish
        default: bash
        }
    }

    /// Leaves files to Readline, which handles `~` and quotes.
    private static let bash = #"""
        # bash completion for reelcache
        _reelcache() {
            local program=$1
            local -a answer
            [[ $program == '~/'* ]] && program=$HOME/${program:2}
            mapfile -t answer < <(command "$program" complete bash -- "${COMP_LINE:0:COMP_POINT}" "$2" 2>/dev/null </dev/null)
            COMPREPLY=("${answer[@]:1}")
            case ${answer[0]} in
                files) compopt -o default ;;
                directories) compopt -o dirnames ;;
            esac
        }
        complete -F _reelcache reelcache

        """#

    /// Uses `compadd`, which quotes values. `_describe` would split them at colons.
    private static let zsh = #"""
        #compdef reelcache
        _reelcache() {
            local program=${(Q)words[1]} line
            local -a answer values notes
            program=${~program}
            answer=("${(@f)$(command "$program" complete zsh -- "${(@Q)words[2,CURRENT - 1]}" "${(Q)PREFIX}" 2>/dev/null </dev/null)}")
            case $answer[1] in
                files|directories)
                    [[ $PREFIX == --*=* ]] && compset -P 1 '*='
                    if [[ $answer[1] == files ]]; then _files; else _files -/; fi
                    ;;
                words)
                    for line in "${(@)answer[2,-1]}"; do
                        values+=("${line%%$'\t'*}")
                        notes+=("${line/$'\t'/  -- }")
                    done
                    (( $#values )) || return 1
                    if [[ "$notes" == "$values" ]]; then
                        compadd -a values
                    else
                        compadd -l -d notes -a values
                    fi
                    ;;
                *) return 1 ;;
            esac
        }
        if [[ $funcstack[1] == _reelcache ]]; then
            _reelcache "$@"
        else
            compdef _reelcache reelcache
        fi

        """#

    /// fish does not split `--option=path`: for files, the first line also has the lead and the typed path.
    private static let fish = #"""
        # fish completion for reelcache
        function __reelcache_complete
            set -l tokens (commandline -opc)
            set -l program $tokens[1]
            set -e tokens[1]
            set -l answer (command $program complete fish -- $tokens (commandline -ct) 2>/dev/null </dev/null)
            set -l head (string split \t -- $answer[1])
            set -e answer[1]
            switch "$head[1]"
                case files
                    printf '%s\n' $head[2](__fish_complete_path $head[3])
                case directories
                    printf '%s\n' $head[2](__fish_complete_directories $head[3] '')
                case words
                    printf '%s\n' $answer
            end
        end
        complete -c reelcache -f -a '(__reelcache_complete)'

        """#
}

extension CompletionScript {
    private static let flag = "--generate-completion-script"

    /// Prints these scripts for the argument parser's own flag, as the parser's scripts cannot complete cached URLs.
    static func printIfRequested() {
        let arguments = CommandLine.arguments
        guard arguments.count > 1, arguments[1].hasPrefix(flag) else { return }
        let name = arguments[1] == flag ? arguments.dropFirst(2).first : String(arguments[1].dropFirst(flag.count + 1))
        // The parser reports an unknown shell.
        guard let shell = CompletionShell(rawValue: name ?? "") else { return }
        print(text(for: shell), terminator: "")
        StandardOutput.finish()
        exit(0)
    }
}
