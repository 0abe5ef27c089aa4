// Package networking holds the commands that connect networks, and their flags, which 'liqoctl peer' has too.
package networking
