"""Collation numbers as events carry them: name, charset, and how to read text in it.

The numbers are those of ``information_schema.collations`` of MySQL 9.7 and MariaDB 11.8 (there with
``collation_character_set_applicability``), which contain those of the versions before; ``utf8`` is spelled ``utf8mb3``.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from historian.errors import UnsupportedEvent

__all__ = ["Collation", "bytes_per_character", "canonical_charset", "collation"]

_COMMON = """
big5: 1_chinese_ci 84_bin
latin2: 2_czech_cs 9_general_ci 21_hungarian_ci 27_croatian_ci 77_bin
dec8: 3_swedish_ci 69_bin
cp850: 4_general_ci 80_bin
latin1: 5_german1_ci 8_swedish_ci 15_danish_ci 31_german2_ci 47_bin 48_general_ci 49_general_cs 94_spanish_ci
hp8: 6_english_ci 72_bin
koi8r: 7_general_ci 74_bin
swe7: 10_swedish_ci 82_bin
ascii: 11_general_ci 65_bin
ujis: 12_japanese_ci 91_bin
sjis: 13_japanese_ci 88_bin
cp1251: 14_bulgarian_ci 23_ukrainian_ci 50_bin 51_general_ci 52_general_cs
hebrew: 16_general_ci 71_bin
tis620: 18_thai_ci 89_bin
euckr: 19_korean_ci 85_bin
latin7: 20_estonian_cs 41_general_ci 42_general_cs 79_bin
koi8u: 22_general_ci 75_bin
gb2312: 24_chinese_ci 86_bin
greek: 25_general_ci 70_bin
cp1250: 26_general_ci 34_czech_cs 44_croatian_ci 66_bin 99_polish_ci
gbk: 28_chinese_ci 87_bin
cp1257: 29_lithuanian_ci 58_bin 59_general_ci
latin5: 30_turkish_ci 78_bin
armscii8: 32_general_ci 64_bin
utf8mb3: 33_general_ci 83_bin 192_unicode_ci 193_icelandic_ci 194_latvian_ci 195_romanian_ci 196_slovenian_ci
  197_polish_ci 198_estonian_ci 199_spanish_ci 200_swedish_ci 201_turkish_ci 202_czech_ci 203_danish_ci
  204_lithuanian_ci 205_slovak_ci 206_spanish2_ci 207_roman_ci 208_persian_ci 209_esperanto_ci 210_hungarian_ci
  211_sinhala_ci 212_german2_ci 214_unicode_520_ci 215_vietnamese_ci 223_general_mysql500_ci
ucs2: 35_general_ci 90_bin 128_unicode_ci 129_icelandic_ci 130_latvian_ci 131_romanian_ci 132_slovenian_ci
  133_polish_ci 134_estonian_ci 135_spanish_ci 136_swedish_ci 137_turkish_ci 138_czech_ci 139_danish_ci
  140_lithuanian_ci 141_slovak_ci 142_spanish2_ci 143_roman_ci 144_persian_ci 145_esperanto_ci 146_hungarian_ci
  147_sinhala_ci 148_german2_ci 150_unicode_520_ci 151_vietnamese_ci 159_general_mysql500_ci
cp866: 36_general_ci 68_bin
keybcs2: 37_general_ci 73_bin
macce: 38_general_ci 43_bin
macroman: 39_general_ci 53_bin
cp852: 40_general_ci 81_bin
utf8mb4: 45_general_ci 46_bin 224_unicode_ci 225_icelandic_ci 226_latvian_ci 227_romanian_ci 228_slovenian_ci
  229_polish_ci 230_estonian_ci 231_spanish_ci 232_swedish_ci 233_turkish_ci 234_czech_ci 235_danish_ci
  236_lithuanian_ci 237_slovak_ci 238_spanish2_ci 239_roman_ci 240_persian_ci 241_esperanto_ci 242_hungarian_ci
  243_sinhala_ci 244_german2_ci 246_unicode_520_ci 247_vietnamese_ci 255_0900_ai_ci 256_de_pb_0900_ai_ci
  257_is_0900_ai_ci 258_lv_0900_ai_ci 259_ro_0900_ai_ci 260_sl_0900_ai_ci 261_pl_0900_ai_ci 262_et_0900_ai_ci
  263_es_0900_ai_ci 264_sv_0900_ai_ci 265_tr_0900_ai_ci 266_cs_0900_ai_ci 267_da_0900_ai_ci 268_lt_0900_ai_ci
  269_sk_0900_ai_ci 270_es_trad_0900_ai_ci 271_la_0900_ai_ci 273_eo_0900_ai_ci 274_hu_0900_ai_ci 275_hr_0900_ai_ci
  277_vi_0900_ai_ci 278_0900_as_cs 279_de_pb_0900_as_cs 280_is_0900_as_cs 281_lv_0900_as_cs 282_ro_0900_as_cs
  283_sl_0900_as_cs 284_pl_0900_as_cs 285_et_0900_as_cs 286_es_0900_as_cs 287_sv_0900_as_cs 288_tr_0900_as_cs
  289_cs_0900_as_cs 290_da_0900_as_cs 291_lt_0900_as_cs 292_sk_0900_as_cs 293_es_trad_0900_as_cs 294_la_0900_as_cs
  296_eo_0900_as_cs 297_hu_0900_as_cs 298_hr_0900_as_cs 300_vi_0900_as_cs 305_0900_as_ci 309_0900_bin
utf16: 54_general_ci 55_bin 101_unicode_ci 102_icelandic_ci 103_latvian_ci 104_romanian_ci 105_slovenian_ci
  106_polish_ci 107_estonian_ci 108_spanish_ci 109_swedish_ci 110_turkish_ci 111_czech_ci 112_danish_ci
  113_lithuanian_ci 114_slovak_ci 115_spanish2_ci 116_roman_ci 117_persian_ci 118_esperanto_ci 119_hungarian_ci
  120_sinhala_ci 121_german2_ci 123_unicode_520_ci 124_vietnamese_ci
utf16le: 56_general_ci 62_bin
cp1256: 57_general_ci 67_bin
utf32: 60_general_ci 61_bin 160_unicode_ci 161_icelandic_ci 162_latvian_ci 163_romanian_ci 164_slovenian_ci
  165_polish_ci 166_estonian_ci 167_spanish_ci 168_swedish_ci 169_turkish_ci 170_czech_ci 171_danish_ci
  172_lithuanian_ci 173_slovak_ci 174_spanish2_ci 175_roman_ci 176_persian_ci 177_esperanto_ci 178_hungarian_ci
  179_sinhala_ci 180_german2_ci 182_unicode_520_ci 183_vietnamese_ci
binary: 63
geostd8: 92_general_ci 93_bin
cp932: 95_japanese_ci 96_bin
eucjpms: 97_japanese_ci 98_bin
"""

_MYSQL = """
utf8mb3: 76_tolower_ci 213_croatian_ci
utf16: 122_croatian_ci
ucs2: 149_croatian_ci
utf32: 181_croatian_ci
utf8mb4: 245_croatian_ci 303_ja_0900_as_cs 304_ja_0900_as_cs_ks 306_ru_0900_ai_ci 307_ru_0900_as_cs 308_zh_0900_as_cs
  310_nb_0900_ai_ci 311_nb_0900_as_cs 312_nn_0900_ai_ci 313_nn_0900_as_cs 314_sr_latn_0900_ai_ci
  315_sr_latn_0900_as_cs 316_bs_0900_ai_ci 317_bs_0900_as_cs 318_bg_0900_ai_ci 319_bg_0900_as_cs 320_gl_0900_ai_ci
  321_gl_0900_as_cs 322_mn_cyrl_0900_ai_ci 323_mn_cyrl_0900_as_cs
gb18030: 248_chinese_ci 249_bin 250_unicode_520_ci
"""

_MARIADB = """
utf16: 122_croatian_mysql561_ci 672_croatian_ci 673_myanmar_ci 674_thai_520_w2 1078_general_nopad_ci 1079_nopad_bin
  1125_unicode_nopad_ci 1147_unicode_520_nopad_ci
ucs2: 149_croatian_mysql561_ci 640_croatian_ci 641_myanmar_ci 642_thai_520_w2 1059_general_nopad_ci 1114_nopad_bin
  1152_unicode_nopad_ci 1174_unicode_520_nopad_ci
utf32: 181_croatian_mysql561_ci 736_croatian_ci 737_myanmar_ci 738_thai_520_w2 1084_general_nopad_ci 1085_nopad_bin
  1184_unicode_nopad_ci 1206_unicode_520_nopad_ci
utf8mb3: 213_croatian_mysql561_ci 576_croatian_ci 577_myanmar_ci 578_thai_520_w2 579_general1400_as_ci
  1057_general_nopad_ci 1107_nopad_bin 1216_unicode_nopad_ci 1238_unicode_520_nopad_ci
utf8mb4: 245_croatian_mysql561_ci 608_croatian_ci 609_myanmar_ci 610_thai_520_w2 611_general1400_as_ci
  1069_general_nopad_ci 1070_nopad_bin 1248_unicode_nopad_ci 1270_unicode_520_nopad_ci
big5: 1025_chinese_nopad_ci 1108_nopad_bin
dec8: 1027_swedish_nopad_ci 1093_nopad_bin
cp850: 1028_general_nopad_ci 1104_nopad_bin
hp8: 1030_english_nopad_ci 1096_nopad_bin
koi8r: 1031_general_nopad_ci 1098_nopad_bin
latin1: 1032_swedish_nopad_ci 1071_nopad_bin
latin2: 1033_general_nopad_ci 1101_nopad_bin
swe7: 1034_swedish_nopad_ci 1106_nopad_bin
ascii: 1035_general_nopad_ci 1089_nopad_bin
ujis: 1036_japanese_nopad_ci 1115_nopad_bin
sjis: 1037_japanese_nopad_ci 1112_nopad_bin
hebrew: 1040_general_nopad_ci 1095_nopad_bin
tis620: 1042_thai_nopad_ci 1113_nopad_bin
euckr: 1043_korean_nopad_ci 1109_nopad_bin
koi8u: 1046_general_nopad_ci 1099_nopad_bin
gb2312: 1048_chinese_nopad_ci 1110_nopad_bin
greek: 1049_general_nopad_ci 1094_nopad_bin
cp1250: 1050_general_nopad_ci 1090_nopad_bin
gbk: 1052_chinese_nopad_ci 1111_nopad_bin
latin5: 1054_turkish_nopad_ci 1102_nopad_bin
armscii8: 1056_general_nopad_ci 1088_nopad_bin
cp866: 1060_general_nopad_ci 1092_nopad_bin
keybcs2: 1061_general_nopad_ci 1097_nopad_bin
macce: 1062_general_nopad_ci 1067_nopad_bin
macroman: 1063_general_nopad_ci 1077_nopad_bin
cp852: 1064_general_nopad_ci 1105_nopad_bin
latin7: 1065_general_nopad_ci 1103_nopad_bin
cp1251: 1074_nopad_bin 1075_general_nopad_ci
utf16le: 1080_general_nopad_ci 1086_nopad_bin
cp1256: 1081_general_nopad_ci 1091_nopad_bin
cp1257: 1082_nopad_bin 1083_general_nopad_ci
geostd8: 1116_general_nopad_ci 1117_nopad_bin
cp932: 1119_japanese_nopad_ci 1120_nopad_bin
eucjpms: 1121_japanese_nopad_ci 1122_nopad_bin
"""

# MariaDB numbers its UCA 14.0.0 collations by rule: from 2048 on 256 a charset, 8 a language.
_UCA_FIRST = 2048
_UCA_CHARSETS = ("utf8mb3", "utf8mb4", "ucs2", "utf16", "utf32")
_UCA_LANGUAGES = {
    **dict(
        enumerate(
            [
                "-",
                "icelandic",
                "latvian",
                "romanian",
                "slovenian",
                "polish",
                "estonian",
                "spanish",
                "swedish",
                "turkish",
                "czech",
                "danish",
                "lithuanian",
                "slovak",
                "spanish2",
                "roman",
                "persian",
                "esperanto",
                "hungarian",
                "sinhala",
                "german2",
            ]
        )
    ),
    23: "vietnamese",
    24: "croatian",
}

_WIDE = {
    **dict.fromkeys(("big5", "sjis", "euckr", "gb2312", "gbk", "ucs2", "cp932"), 2),
    **dict.fromkeys(("ujis", "utf8mb3", "eucjpms"), 3),
    **dict.fromkeys(("utf8mb4", "utf16", "utf16le", "utf32", "gb18030"), 4),
}


class Collation(NamedTuple):
    """A collation's name and charset."""

    name: str
    charset: str


@lru_cache(maxsize=2)
def _table(flavor: str) -> dict[int, Collation]:
    found: dict[int, Collation] = {}
    charset = ""
    for word in (_COMMON + (_MARIADB if flavor == "mariadb" else _MYSQL)).split():
        if word.endswith(":"):
            charset = word[:-1]
        else:
            number, underscore, rest = word.partition("_")
            found[int(number)] = Collation(charset + underscore + rest, charset)
    return found


def collation(number: int, flavor: str) -> Collation:
    """The collation of that *number* on servers of that *flavor*.

    >>> collation(2306, "mariadb")
    Collation(name='utf8mb4_uca1400_as_ci', charset='utf8mb4')
    """
    known = _table(flavor).get(number)
    if known is not None:
        return known
    charset, rest = divmod(number - _UCA_FIRST, 256)
    language = _UCA_LANGUAGES.get(rest >> 3)
    if flavor != "mariadb" or not 0 <= charset < len(_UCA_CHARSETS) or language is None:
        raise UnsupportedEvent("an event names a collation that this release does not know", found=f"number {number}")
    words = [
        _UCA_CHARSETS[charset],
        "uca1400",
        language.strip("-"),
        "nopad" if rest & 4 else "",
        "as" if rest & 2 else "ai",
        "cs" if rest & 1 else "ci",
    ]
    return Collation("_".join(filter(None, words)), _UCA_CHARSETS[charset])


def canonical_charset(charset: str) -> str:
    """*charset* under the one of its names that logs of all servers are given here."""
    return "utf8mb3" if charset == "utf8" else charset


def bytes_per_character(charset: str) -> int:
    """The most bytes that one character of *charset* takes, ``maxlen`` of ``information_schema.character_sets``."""
    return _WIDE.get(canonical_charset(charset), 1)
