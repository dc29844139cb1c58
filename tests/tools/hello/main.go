// The smallest program in Go: what a probe is measured beside (P11).
package main

import "os"

func main() {
	os.Stdout.WriteString("ready\n")
}
