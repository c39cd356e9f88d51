#!/usr/bin/env bash
# The tables of the studies that want an accelerator, several commands side by side on one card:
#   bash studies/accelerator.sh cifar DATA OUT     bias: Tables 3 to 7 and 15, Fig. 6, patches against pixels, readings of the paper, audits
#   bash studies/accelerator.sh photos DATA OUT    bias: Tables 8 to 12 and audits on Pascal VOC
#   bash studies/accelerator.sh birds DATA OUT     planted: Figs. 3, 11, 12, and Fig. 4 of a small network
#   bash studies/accelerator.sh texts DATA OUT     articles: Table 1 and post-hoc on both corpora, rationales
#   bash studies/accelerator.sh scenes DATA OUT    bam: section 5, Figs. 2 and 13; DATA also holds lite0.safetensors (studies/imagenet_weights.py)
#   bash studies/accelerator.sh left DATA OUT      what the studies say is from before or of one training: post-hoc methods on
#                                                  rationale models, BAM with ResNet-50 from nothing, Fig. 3 of the bias paper on Pascal VOC
# DATA holds the files that the studies name. Every command has a log and a folder under OUT, and goes on where it was.
# Small networks gain much from processes that use the card at the same time (nvidia-cuda-mps-control -d). But give none of
# them a fixed share of it (CUDA_MPS_ACTIVE_THREAD_PERCENTAGE): at 40, 60 and 70 % trainings in bfloat16 ended in nan.
set -u
part=$1 data=$2 out=$3
export PYTHONPATH=src PYTHONUNBUFFERED=1
python=${PYTHON:-python3} device=${DEVICE:-cuda}
mkdir -p "$out"

reproduce() { # folder, name of the reproduction, further words
    local folder=$1 name=$2
    shift 2
    $python -m forsooth reproduce "$name" --workers 1 --device "$device" --out "$out/$folder" "$@" >"$out/$folder.log" 2>&1 ||
        echo "$name: $(tail -n 3 "$out/$folder.log")"
}

reading() { # part of studies/bias.py
    $python studies/bias.py "$1" "$out/$1" --data "$data" --device "$device" >"$out/$1.log" 2>&1 ||
        echo "$1: $(tail -n 3 "$out/$1.log")"
}

papers_rationales() {
    reproduce rationales articles/post-hoc --data "$data/beer_reviews_7k.tsv.gz" --workers 6 --set recipe=released \
        --set "vectors=$data/wordvec_googlenews300_9k.npz" --set models=rationale_relaxed,rationale_reinforce --set samples=50
}

small_rationales() { # on the processor
    local device=cpu
    reproduce small-rationales articles/post-hoc --data "$data/beer_reviews_7k.tsv.gz" --workers 8 \
        --set models=rationale_relaxed,rationale_reinforce --set samples=50 --set rationale_variant=small --set recipe=quick \
        --set rationale_trainings=5
}

regions_of_voc() {
    reproduce voc-audits bias/figure-3 --data "$data/voc2012_seg_224px.zip" --only dataset=voc --set samples=50 --set trainings=5
}

bird=$data/birds_zhou_128px.zip
birds=(--data "$bird" --set side=128 --set batch=32 --set epochs=60 --set maps=released --workers 4)
scenes=(--data "$data" --workers 9 --set models=efficientnet_lite0 --set "initial_weights=$data/lite0.safetensors" --set side=224
    --set first_scene=bedroom --set train=40 --set val=5 --set test=10 --set fine_train=300 --set fine_val=30 --set epochs=10
    --set samples=300 --set samples_expensive=30 --set samples_per_k=60 --set samples_robustness=80 --set gate=0.3)
nothing=(--data "$data" --workers 6 --set side=96 --set train=60 --set val=10 --set test=10 --set fine_train=250 --set fine_val=50
    --set epochs=40 --set samples=500 --set samples_expensive=30 --set samples_per_k=60 --set samples_robustness=40 --set gate=0.2
    --set same_objects=true)
case $part in
cifar)
    (for k in 3 4 5; do reproduce bias bias/table-$k --data "$data"; done) &
    (for k in 6 7; do reproduce deep bias/table-$k --data "$data"; done) &
    (reproduce rule bias/patches-against-pixels --data "$data" --set samples=50 --set permutations=1000
        reproduce rule bias/figure-6 --data "$data" --set samples=32 --set permutations=200 --set models=lenet,resnet20) &
    (reproduce audits bias/figure-3 --data "$data" --only dataset=cifar10,leaves --set samples=100 --set trainings=5
        reproduce audits bias/appendix-n --data "$data" --only dataset=cifar10,leaves,tetromino --set samples=100 \
            --set permutations=1000 --set trainings=5) &
    (for name in deep-shap layers variants; do reading $name; done
        reproduce fifteen bias/table-15 --data "$data" --set samples=16) &
    (reproduce few xaitris/few-samples) &
    ;;
photos)
    voc=$data/voc2012_seg_224px.zip
    (for k in 10 11 8; do reproduce voc bias/table-$k --data "$voc"; done) &
    (for k in 12 9; do reproduce voc-deep bias/table-$k --data "$voc"; done) &
    (regions_of_voc
        reproduce voc-audits bias/appendix-n --data "$voc" --only dataset=voc --set samples=50 --set trainings=5) &
    ;;
birds)
    (reproduce planted planted/figure-3 "${birds[@]}" --set samples=25 --set trainings=10 --set runs_with_checkpoints=4) &
    (reproduce visible planted/figure-11 "${birds[@]}" --set samples=20 --set gate=0.9 --set groups=2
        reproduce visible planted/figure-12 "${birds[@]}" --set samples=20 --set gate=0.9 --set pairs=1) &
    (reproduce small planted/figure-4 --data "$bird" --device cpu --workers 4 --set models=residual_small --set recipe=quick \
        --set side=64 --set strength=2 --set groups=2 --set pairs=1 --set levels=0,2,4 --set r_values=0.5,0.75,1.0 \
        --set samples=10 --set gate=0.9 --set epochs=20 --set maps=released) &
    ;;
texts)
    (for corpus in beer_reviews_7k imdb_reviews_16k; do
        reproduce $corpus articles/post-hoc --data "$data/$corpus.tsv.gz" --workers 12 --set models=attention \
            --set trainings=11 --set samples=50
        reproduce $corpus articles/table-1 --data "$data/$corpus.tsv.gz" --workers 12
    done) &
    papers_rationales &
    small_rationales &
    ;;
scenes)
    (for name in section-5 figure-2 figure-13; do reproduce bam bam/$name "${scenes[@]}"; done) &
    ;;
left)
    papers_rationales &
    small_rationales &
    (for name in section-5 figure-2 figure-13; do reproduce resnet50 bam/$name "${nothing[@]}"; done) &
    regions_of_voc &
    ;;
*)
    echo "usage: bash studies/accelerator.sh cifar|photos|birds|texts|scenes|left DATA OUT" >&2
    exit 2
    ;;
esac
wait
