// Package chart tests the Helm chart as users meet it: what it renders with several sets of values, which values it
// refuses and with what sentence, and that every value and the configuration file of our binaries agree.
package chart
