_FUNCTION() {
    # bash breaks words up at `=` and `:` too: pieces that no blank parts are one word again.
    local words=() last=-1 cursor=0 before= rest=$COMP_LINE piece i
    for ((i = 0; i < ${#COMP_WORDS[@]}; i++)); do
        piece=${COMP_WORDS[i]}
        if ((i == 0)) || [[ $rest == [[:blank:]]* ]]; then
            words[++last]=
        fi
        if ((i == COMP_CWORD)); then
            cursor=$last
            before=${words[last]}
            [[ -n $2 || $piece != [=:]* ]] || before+=$piece
        fi
        words[last]+=$piece
        [[ -z $piece ]] || rest=${rest#*"$piece"}
    done
    words[cursor]=$before$2
    local IFS=$'\013'
    COMPREPLY=( $( \
        _CLAP_IFS="$IFS" \
        _CLAP_COMPLETE_INDEX="$cursor" \
        VARIABLE="bash" \
        PROGRAM -- "${words[@]}" \
    ) )
    if [[ $? != 0 ]]; then
        unset COMPREPLY
        return
    fi
    # What stands before the last of those pieces stays as it is.
    for i in "${!COMPREPLY[@]}"; do
        COMPREPLY[i]=${COMPREPLY[i]#"$before"}
    done
    if compopt +o nospace 2> /dev/null && [[ ${COMPREPLY-} =~ [=/:]$ ]]; then
        compopt -o nospace
    fi
}
if [[ "${BASH_VERSINFO[0]}" -eq 4 && "${BASH_VERSINFO[1]}" -ge 4 || "${BASH_VERSINFO[0]}" -gt 4 ]]; then
    complete -o nospace -o bashdefault -o nosort -F _FUNCTION PROGRAM
else
    complete -o nospace -o bashdefault -F _FUNCTION PROGRAM
fi
