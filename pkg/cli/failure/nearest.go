package failure

import (
	"slices"
	"strings"
)

// Nearest returns those of the known words that somebody may have meant by a word that is none of them: the likest first, at most three.
func Nearest(word string, known []string) []string {
	type candidate struct {
		word     string
		distance int
	}
	var likely []candidate
	for _, other := range known {
		d := distance(strings.ToLower(word), strings.ToLower(other))
		if d <= len(other)*2/5 {
			likely = append(likely, candidate{other, d})
		}
	}
	slices.SortStableFunc(likely, func(a, b candidate) int { return a.distance - b.distance })
	var words []string
	for _, c := range likely[:min(len(likely), 3)] {
		words = append(words, c.word)
	}
	return words
}

// distance is how many letters have to be put in, left out or changed to make one word of the other (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		corner := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := corner
			if a[i] != b[j] {
				change++
			}
			corner = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
