"""Crawl a site with `LikewisePipeline`, in a process of its own that a test may kill.

`crawl.py URL EXPORT SETTINGS`: fetches every page that the first one links to, writes one line of JSON for each
exported item to EXPORT; the settings are JSON. Prints the pipeline's statistics and the dropped items as JSON.
"""

import json
import sys

import scrapy
from scrapy import signals
from scrapy.crawler import CrawlerProcess


class Page(scrapy.Item):
    url, text, likewise = scrapy.Field(), scrapy.Field(), scrapy.Field()


class Pages(scrapy.Spider):
    name = "pages"

    @classmethod
    def from_crawler(cls, crawler, *args, **kwargs):
        spider = super().from_crawler(crawler, *args, **kwargs)
        spider.dropped = crawler.dropped = {}
        crawler.signals.connect(spider.note, signals.item_dropped)
        return spider

    def note(self, item, exception):
        verdict = getattr(exception, "verdict", None)
        self.dropped[item["url"]] = {"message": str(exception), **(verdict._asdict() if verdict else {})}

    def parse(self, response):
        yield from response.follow_all(css="a", callback=self.parse_page)

    def parse_page(self, response):
        yield Page(url=response.url.rpartition("/")[2], text=response.css("p::text").get())


def main(url, export, settings):
    process = CrawlerProcess(
        {
            "ITEM_PIPELINES": {"likewise.integrations.scrapy.LikewisePipeline": 300},
            "FEEDS": {export: {"format": "jsonlines"}},
            "LOG_LEVEL": "ERROR",
            "TELNETCONSOLE_ENABLED": False,
            **json.loads(settings),
        }
    )
    crawler = process.create_crawler(Pages)
    process.crawl(crawler, start_urls=[url])
    process.start()
    stats = {name: value for name, value in crawler.stats.get_stats().items() if name.startswith("likewise/")}
    print(json.dumps({"stats": stats, "dropped": crawler.dropped}))


if __name__ == "__main__":
    main(*sys.argv[1:])
