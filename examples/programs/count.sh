# Answers each line with its number of words.
while read -r line; do
    set -f
    set -- $line
    echo "$#"
done
