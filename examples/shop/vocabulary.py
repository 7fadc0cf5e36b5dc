"""Names and words that the shop's rows are made of."""

from __future__ import annotations

FIRST_NAMES = (
    *("Ada", "Björn", "Chloé", "Dmitri", "Élodie", "Fatima", "Grace", "Håkon", "Iñigo", "Jürgen", "Kenji", "Lúcia"),
    *(
        "Małgorzata",
        "Nguyễn",
        "Oğuz",
        "Priya",
        "Quentin",
        "Рита",
        "Søren",
        "Thaïs",
        "Uğur",
        "Véronique",
        "Wei",
        "Ξένια",
    ),
    *("Yusuf", "Zoë", "陽子", "민준"),
)
LAST_NAMES = (
    *("O'Brien", "Müller", "García", "Ivanova", "Sørensen", "Nowak", "Özdemir", "Tanaka", "Silva", "Dupont", "Rossi"),
    *("Lindqvist", "Papadopoulos", "van den Berg", "Kowalczyk", "Hernández", "MacLeod", "Šimić", "Þórsson", "Ng"),
)
CITIES = (
    "Köln",
    "Málaga",
    "Århus",
    "Besançon",
    "Reykjavík",
    "São Paulo",
    "Zürich",
    "Dublin",
    "Linköping",
    "Évora",
    "Bath",
)
GOODS = (
    *(
        "Sencha 煎茶",
        "Earl Grey",
        "Assam «Breakfast»",
        "Rooibos",
        "Menthe poivrée",
        "Матча",
        "Kanne, gußeisern",
        "Teesieb",
    ),
    *("Mug “Sunday”", "Zucker 1 kg", "Honey, heather", "🫖 pot", "Infuser 50%", "Tin (blue)", "Gaiwan 盖碗", "Whisk"),
)
QUALITIES = ("small", "groß", "bio", "classic", "no. 7", "1st flush", "limité", "pair of")
TAGS = ("new", "sale", "bio", "gift")
NOTES = (
    "leave at the door",
    "Klingel defekt",
    "appelez-moi \\ svp",
    "don't ring",
    "zwei bitte",
    "👍",
    "line one\nline two",
)
PAGES = ("/", "/tea", "/pots", "/cart", "/about", "/sale", "/tea/matcha", "/help?q=50%")
