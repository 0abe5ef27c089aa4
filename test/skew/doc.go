// Package skew runs the present code of Liqo beside that of the last recorded release: two real clusters use each other's resources while
// one of them is older, and each is upgraded first once, while pods run.
//
// Contract:
//   - The lab is named "skew": rome and milan with one real node each. It needs root. `make skew` runs it; `make test` does not.
//   - A release is what its own commit makes: liqoctl with the chart that is built into it, and the images. The recorded one is
//     compiled once, in the cache outside the checkout.
//   - rome is a consumer of milan and milan one of rome all the time, so each upgrade is one of a consumer and one of a provider.
//   - Everything is done by liqoctl, as a user does it. The tests only look, and change applications.
//   - Every wait has a deadline, and fails with what it waited for and what it saw last. Nothing sleeps.
//
// Environment:
//
//	LIQO_SKEW_KEEP=1  keeps the lab after a failure, to look at; `go run ./test/lab down --name skew` removes it
package skew
