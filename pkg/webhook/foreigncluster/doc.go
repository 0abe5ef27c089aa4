// Package foreigncluster is the admission of ForeignClusters: it gives them the label by which they are found.
package foreigncluster
