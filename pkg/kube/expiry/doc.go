// Package expiry is the metric that tells until when the certificates that a process uses are valid. It is one metric for all of
// them, so that one alert watches over all; the parts that hold a certificate are on several floors.
package expiry
