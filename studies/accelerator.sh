#!/usr/bin/env bash
# The tables of the studies that want an accelerator, several commands side by side on one card:
#   bash studies/accelerator.sh cifar DATA OUT     bias: Tables 3 to 7, Fig. 6, patches against pixels, audits
#   bash studies/accelerator.sh photos DATA OUT    bias: Tables 8 to 12 and audits on Pascal VOC; planted: Figs. 3, 11, 12
# DATA holds the files that the studies name. Every command has a log and a folder under OUT, and goes on where it was.
set -u
part=$1 data=$2 out=$3
export PYTHONPATH=src PYTHONUNBUFFERED=1
python=${PYTHON:-python3}
mkdir -p "$out"

reproduce() { # folder, artefact, further words
    local folder=$1 artefact=$2
    shift 2
    $python -m forsooth reproduce "$artefact" --workers 1 --device cuda --out "$out/$folder" "$@" >"$out/$folder.log" 2>&1 ||
        echo "$artefact: $(tail -n 3 "$out/$folder.log")"
}

birds=(--data "$data/birds_zhou_128px.zip" --set side=128 --set batch=32 --set epochs=60 --set maps=released)
case $part in
cifar)
    (for k in 3 4 5; do reproduce bias bias/table-$k --data "$data"; done) &
    (for k in 6 7; do reproduce deep bias/table-$k --data "$data"; done) &
    (reproduce rule bias/patches-against-pixels --data "$data" --set samples=50 --set permutations=1000
        reproduce rule bias/figure-6 --data "$data" --set samples=32 --set permutations=200 --set models=lenet,resnet20) &
    (reproduce audits bias/figure-3 --data "$data" --only dataset=cifar10,leaves --set samples=100
        reproduce audits bias/appendix-n --data "$data" --only dataset=cifar10,leaves,tetromino --set samples=100 \
            --set permutations=1000) &
    (reproduce few xaitris/few-samples) &
    ;;
photos)
    (for k in 10 11 12 8 9; do reproduce voc bias/table-$k --data "$data"; done) &
    (reproduce voc-audits bias/figure-3 --data "$data" --only dataset=voc --set samples=50
        reproduce voc-audits bias/appendix-n --data "$data" --only dataset=voc --set samples=50) &
    (reproduce planted planted/figure-3 "${birds[@]}" --workers 4 --set samples=25 --set trainings=10 --set runs_with_checkpoints=4
        reproduce planted planted/figure-11 "${birds[@]}" --workers 4 --set samples=20 --set gate=0.9 --set groups=2
        reproduce planted planted/figure-12 "${birds[@]}" --workers 4 --set samples=20 --set gate=0.9 --set pairs=1) &
    ;;
*)
    echo "usage: bash studies/accelerator.sh cifar|photos DATA OUT" >&2
    exit 2
    ;;
esac
wait
