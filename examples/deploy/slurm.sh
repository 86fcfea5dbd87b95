#!/bin/bash
# The service on one node of a SLURM cluster, for a trainer in another job.
#
#   sbatch examples/deploy/slurm.sh
#
# The queue and the secret are in FOLDER, so that a job that was requeued continues with its queue.
#SBATCH --job-name=kernel-gym
#SBATCH --nodes=1
#SBATCH --gpus-per-node=8
#SBATCH --cpus-per-task=64
#SBATCH --time=24:00:00
#SBATCH --requeue
#SBATCH --signal=B:TERM@120

set -euo pipefail
FOLDER=${FOLDER:-$HOME/kernel-gym/service}
PORT=${PORT:-8000}
mkdir -p "$FOLDER"

ray start --head --num-gpus=8 --include-dashboard=false --disable-usage-stats
echo "http://$(hostname -f):$PORT" > "$FOLDER/address"  # the trainer's KERNEL_GYM_EXECUTOR

trap 'kill -TERM $(jobs -p) || true' TERM # before the start: the signal may come at any time
kernel-gym serve --executor ray --device auto --folder "$FOLDER" \
    --host 0.0.0.0 --port "$PORT" --tokens "$FOLDER/tokens.toml" &
wait || true
wait || true # after the signal: until running evaluations are done
ray stop
