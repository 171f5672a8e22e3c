// Reads of samples are sorted and counted, and the counts merged. A task sorts in a folder of the machine, from which Nextflow copies
// what it made (scratch). Counting fails at the first try for one sample.
process SORT {
    tag "${sample.simpleName}"
    scratch true
    publishDir 'results', mode: 'copy'

    input: path sample
    output: path "${sample.simpleName}.sorted.gz"

    script:
    """
    gzip -dc $sample | paste - - - - | sort | tr '\\t' '\\n' | gzip -n > ${sample.simpleName}.sorted.gz
    """
}

process COUNT {
    tag "${sorted.simpleName}"
    errorStrategy 'retry'

    input: path sorted
    output: path 'counts/*.txt'

    script:
    """
    [[ $task.attempt > 1 || ${sorted.simpleName} != s0 ]] || { echo 'the first try fails' >&2; exit 7; }
    mkdir counts
    gzip -dc $sorted | grep -c '^+\$' > counts/${sorted.simpleName}.txt
    """
}

process MERGE {
    publishDir 'results', mode: 'copy'

    input: path counts
    output: path 'counts.tsv'

    script:
    """
    for file in $counts; do printf '%s\\t' \$(basename \$file .txt); cat \$file; done | tee counts.tsv
    """
}

workflow {
    SORT(Channel.fromPath("$params.raw/*.fastq.gz"))
    COUNT(SORT.out)
    MERGE(COUNT.out.toSortedList { it.name })
}
