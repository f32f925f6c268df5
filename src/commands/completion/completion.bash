# bash completion for signalbox

_signalbox() {
    local line=${COMP_LINE:0:COMP_POINT} words value
    # Splits at spaces and runs nothing: the line may have $(…) in it, or > and the name of a file.
    read -ra words <<< "$line"
    [[ $line == *[[:space:]] ]] && words+=("")
    local last=${words[${#words[@]} - 1]}
    # Bash completes only what stands behind the last = or : of a word.
    local before=${last%"$2"}
    COMPREPLY=()
    while IFS=$'\t' read -r value _; do
        [[ $value == "$last"* && $value != :* ]] && COMPREPLY+=("${value#"$before"}")
    done < <(command "$1" complete -- "${words[@]:1}" 2> /dev/null)
}

# Names of files are completed where signalbox has nothing to offer.
complete -o default -F _signalbox signalbox
