package binding

import "time"

// retry is how long to wait for the cache to show an object that the API server says exists.
const retry = time.Second
