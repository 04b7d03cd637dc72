// Visits the pages of a small web: all links of a page concurrently, and each page once.
package main

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

type page struct {
	url     string
	links   []string
	missing bool
}

var web = []page{
	{url: "/", links: []string{"/pkg", "/cmd", "/doc"}},
	{url: "/pkg", links: []string{"/", "/pkg/fmt", "/pkg/os"}},
	{url: "/pkg/fmt", links: []string{"/", "/pkg"}},
	{url: "/pkg/os", links: []string{"/pkg", "/gone"}},
	{url: "/cmd", links: []string{"/cmd/go"}},
	{url: "/doc", links: []string{"/doc", "/gone"}},
	{url: "/cmd/go", missing: true},
	{url: "/gone", missing: true},
}

var errNotFound = errors.New("not found")

type crawler struct {
	lock sync.Mutex
	seen map[string]bool
	wait sync.WaitGroup
}

func fetch(url string) ([]string, error) {
	time.Sleep(time.Millisecond)
	for _, p := range web {
		if p.url == url && !p.missing {
			return p.links, nil
		}
	}
	return nil, errNotFound
}

func (c *crawler) first(url string) bool {
	c.lock.Lock()
	defer c.lock.Unlock()
	seen := c.seen[url]
	c.seen[url] = true
	return !seen
}

func (c *crawler) crawl(url string) {
	defer c.wait.Done()
	if !c.first(url) {
		return
	}
	links, err := fetch(url)
	if err != nil {
		return
	}
	for _, link := range links {
		c.wait.Add(1)
		go c.crawl(link)
	}
}

func main() {
	c := crawler{seen: map[string]bool{}}
	c.wait.Add(1)
	go c.crawl("/")
	c.wait.Wait()
	for _, p := range web {
		if !c.seen[p.url] {
			fmt.Printf("%s: not seen\n", p.url)
		} else if p.missing {
			fmt.Printf("%s: not found\n", p.url)
		} else {
			fmt.Println(p.url)
		}
	}
}
