// Package v1alpha1 holds the configuration of our binaries. The structs have the shape of the chart's values, so that a
// setting has three stations at most: the chart's value, the field here, and the function that uses it.
//
// Defaults stand in the chart's values.yaml; tests compare what code does where nothing is given with them.
package v1alpha1
