#!/usr/bin/env bash
# Claim: Exact copies fall out of a sparse matrix of distances when it is made symmetric: SciPy's maximum, + and multiply drop the zeros that stand for distance 0, and so does its minimum spanning tree.
# Package: scipy 1.17.1, scikit-learn 1.9.1, numpy 2.4.6 (PyPI)
# Expected: A zero that is stored is an edge of weight 0, as SciPy's documentation of graphs states, so the nearest pairs of all remain neighbors in any step that keeps the farther ones.
# Happens: Graphs of scikit-learn store the zeros, and transposing, selecting rows, abs, scaling, saving, DBSCAN and connected_components keep them. An operation on two matrices, even on a matrix and its equal transpose, writes only results other than 0. minimum_spanning_tree, whose own page takes zeros for missing edges, leaves them out.
# Seen: 40 exact copies and 40 near-duplicates of 64 bits, in groups of four: DBSCAN finds 40 and 40 in the graph as made, 0 and 40 after maximum, minimum, the mean with the transpose, or a mask of distances; 20 connected groups, 50 in its spanning tree; with 1 added to all distances 40 and 40, and 20 (2026-11-30)
# Matters: Graphs of k neighbors are made symmetric before clustering. Then texts with a changed word are grouped, and exact copies are all kept as noise. Add a constant to the distances that are stored.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv --without-pip env
python3 -m pip --python env install -q --no-compile scipy==1.17.1 scikit-learn==1.9.1 numpy==2.4.6
env/bin/python > seen.txt 2> log.txt <<'PYTHON'
import numpy
from scipy import sparse
from scipy.sparse import csgraph
from sklearn.cluster import DBSCAN
from sklearn.neighbors import kneighbors_graph, radius_neighbors_graph

RADIUS = 4 / 64
random = numpy.random.default_rng(1)
bits = numpy.repeat(random.integers(0, 2, (20, 64)), 4, axis=0)
for row in bits[40:]:
    row[random.choice(64, 2, replace=False)] ^= 1


def line(name, graph, eps=RADIUS):
    graph = sparse.csr_matrix(graph)
    found = DBSCAN(eps=eps, min_samples=2, metric="precomputed").fit(graph.copy()).labels_ >= 0
    groups = csgraph.connected_components(graph, directed=False)[0]
    print(f"{name}: {(graph.data == 0).sum()} zeros stored, copies {found[:40].sum()}, near-duplicates {found[40:].sum()}, {groups} groups")


graph = radius_neighbors_graph(bits, RADIUS, metric="hamming", mode="distance")
print("equal to its transpose:", bool((graph.toarray() == graph.T.toarray()).all()))
line("as made", graph)
line("transposed", graph.T)
line("rows selected twice", graph[numpy.arange(80)][:, numpy.arange(80)])
line("abs", abs(graph))
sparse.save_npz("graph.npz", graph)
line("saved", sparse.load_npz("graph.npz"))
line("maximum with the transpose", graph.maximum(graph.T))
line("minimum with the transpose", graph.minimum(graph.T))
line("mean with the transpose", (graph + graph.T) / 2)
line("mask of distances", graph.multiply(graph <= RADIUS))
line("minimum spanning tree", csgraph.minimum_spanning_tree(graph))
neighbors = kneighbors_graph(bits, 3, metric="hamming", mode="distance")
line("three neighbors", neighbors)
line("three neighbors, maximum", neighbors.maximum(neighbors.T))
graph.data += 1
line("1 added, maximum", graph.maximum(graph.T), 1 + RADIUS)
line("1 added, spanning tree", csgraph.minimum_spanning_tree(graph), 1 + RADIUS)
PYTHON
cat seen.txt
diff - seen.txt <<'SEEN'
equal to its transpose: True
as made: 120 zeros stored, copies 40, near-duplicates 40, 20 groups
transposed: 120 zeros stored, copies 40, near-duplicates 40, 20 groups
rows selected twice: 120 zeros stored, copies 40, near-duplicates 40, 20 groups
abs: 120 zeros stored, copies 40, near-duplicates 40, 20 groups
saved: 120 zeros stored, copies 40, near-duplicates 40, 20 groups
maximum with the transpose: 0 zeros stored, copies 0, near-duplicates 40, 50 groups
minimum with the transpose: 0 zeros stored, copies 0, near-duplicates 40, 50 groups
mean with the transpose: 0 zeros stored, copies 0, near-duplicates 40, 50 groups
mask of distances: 0 zeros stored, copies 0, near-duplicates 40, 50 groups
minimum spanning tree: 0 zeros stored, copies 0, near-duplicates 40, 50 groups
three neighbors: 120 zeros stored, copies 40, near-duplicates 40, 20 groups
three neighbors, maximum: 0 zeros stored, copies 0, near-duplicates 40, 50 groups
1 added, maximum: 0 zeros stored, copies 40, near-duplicates 40, 20 groups
1 added, spanning tree: 0 zeros stored, copies 40, near-duplicates 40, 20 groups
SEEN
