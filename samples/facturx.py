"""Puts EN 16931 XML (Cross Industry Invoice) into a drawn invoice, as Factur-X does."""

import io
from string import Template
from typing import Final
from xml.sax.saxutils import escape

from pypdf import PdfWriter
from pypdf.generic import (
    ArrayObject,
    ByteStringObject,
    DictionaryObject,
    NameObject,
    StreamObject,
    TextStringObject,
)

from samples.drawing import Bill, Line

_FILE: Final = "factur-x.xml"
_THANKS: Final = "Thank you for your order. The deposit is deducted."


def with_xml(pdf: bytes, bill: Bill) -> bytes:
    """The PDF with the bill's XML as an associated file; the same input, the same bytes."""
    return embedded(pdf, cross_industry_invoice(bill), b"nanovm-sample-01")


def embedded(pdf: bytes, xml: bytes, mark: bytes) -> bytes:
    """The PDF with XML as its associated file, as Factur-X demands; ``mark`` is its id."""
    writer = PdfWriter(clone_from=io.BytesIO(pdf))
    stream = StreamObject()
    stream.set_data(xml)
    stream[NameObject("/Type")] = NameObject("/EmbeddedFile")
    stream[NameObject("/Subtype")] = NameObject("/text/xml")
    held = writer._add_object(stream.flate_encode())
    spec = DictionaryObject(
        {
            NameObject("/Type"): NameObject("/Filespec"),
            NameObject("/F"): TextStringObject(_FILE),
            NameObject("/UF"): TextStringObject(_FILE),
            NameObject("/AFRelationship"): NameObject("/Alternative"),
            NameObject("/EF"): DictionaryObject({NameObject("/F"): held, NameObject("/UF"): held}),
        }
    )
    listed = writer._add_object(spec)
    names = ArrayObject([TextStringObject(_FILE), listed])
    root = writer._root_object
    root[NameObject("/AF")] = ArrayObject([listed])
    root[NameObject("/Names")] = DictionaryObject(
        {NameObject("/EmbeddedFiles"): DictionaryObject({NameObject("/Names"): names})}
    )
    writer._ID = ArrayObject([ByteStringObject(mark)] * 2)
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


_INVOICE: Final = Template("""\
<?xml version="1.0" encoding="UTF-8"?>
<rsm:CrossIndustryInvoice
    xmlns:rsm="urn:un:unece:uncefact:data:standard:CrossIndustryInvoice:100"
    xmlns:ram="urn:un:unece:uncefact:data:standard:ReusableAggregateBusinessInformationEntity:100"
    xmlns:udt="urn:un:unece:uncefact:data:standard:UnqualifiedDataType:100">
  <rsm:ExchangedDocumentContext>
    <ram:GuidelineSpecifiedDocumentContextParameter>
      <ram:ID>urn:cen.eu:en16931:2017</ram:ID>
    </ram:GuidelineSpecifiedDocumentContextParameter>
  </rsm:ExchangedDocumentContext>
  <rsm:ExchangedDocument>
    <ram:ID>$number</ram:ID>
    <ram:TypeCode>380</ram:TypeCode>
    <ram:IssueDateTime>
      <udt:DateTimeString format="102">$issued</udt:DateTimeString>
    </ram:IssueDateTime>
    <ram:IncludedNote>
      <ram:Content>$note</ram:Content>
    </ram:IncludedNote>
  </rsm:ExchangedDocument>
  <rsm:SupplyChainTradeTransaction>
$lines\
    <ram:ApplicableHeaderTradeAgreement>
      <ram:SellerTradeParty>
        <ram:Name>$seller</ram:Name>
        <ram:DefinedTradeContact>
          <ram:EmailURIUniversalCommunication>
            <ram:URIID>$email</ram:URIID>
          </ram:EmailURIUniversalCommunication>
        </ram:DefinedTradeContact>
        <ram:PostalTradeAddress>
          <ram:PostcodeCode>75001</ram:PostcodeCode>
          <ram:LineOne>$street</ram:LineOne>
          <ram:CityName>Paris</ram:CityName>
          <ram:CountryID>FR</ram:CountryID>
        </ram:PostalTradeAddress>
        <ram:SpecifiedTaxRegistration>
          <ram:ID schemeID="VA">FR32123456789</ram:ID>
        </ram:SpecifiedTaxRegistration>
      </ram:SellerTradeParty>
      <ram:BuyerTradeParty>
        <ram:Name>$buyer</ram:Name>
        <ram:PostalTradeAddress>
          <ram:PostcodeCode>EX1 2MP</ram:PostcodeCode>
          <ram:LineOne>12 Quayside</ram:LineOne>
          <ram:CityName>Exampletown</ram:CityName>
          <ram:CountryID>GB</ram:CountryID>
        </ram:PostalTradeAddress>
      </ram:BuyerTradeParty>
    </ram:ApplicableHeaderTradeAgreement>
    <ram:ApplicableHeaderTradeDelivery/>
    <ram:ApplicableHeaderTradeSettlement>
      <ram:InvoiceCurrencyCode>$currency</ram:InvoiceCurrencyCode>
      <ram:SpecifiedTradeSettlementPaymentMeans>
        <ram:TypeCode>58</ram:TypeCode>
        <ram:PayeePartyCreditorFinancialAccount>
          <ram:IBANID>$iban</ram:IBANID>
        </ram:PayeePartyCreditorFinancialAccount>
      </ram:SpecifiedTradeSettlementPaymentMeans>
      <ram:ApplicableTradeTax>
        <ram:CalculatedAmount>$vat</ram:CalculatedAmount>
        <ram:TypeCode>VAT</ram:TypeCode>
        <ram:BasisAmount>$net</ram:BasisAmount>
        <ram:CategoryCode>S</ram:CategoryCode>
        <ram:RateApplicablePercent>$percent</ram:RateApplicablePercent>
      </ram:ApplicableTradeTax>
      <ram:SpecifiedTradePaymentTerms>
        <ram:DueDateDateTime>
          <udt:DateTimeString format="102">$due</udt:DateTimeString>
        </ram:DueDateDateTime>
      </ram:SpecifiedTradePaymentTerms>
      <ram:SpecifiedTradeSettlementHeaderMonetarySummation>
        <ram:LineTotalAmount>$net</ram:LineTotalAmount>
        <ram:TaxBasisTotalAmount>$net</ram:TaxBasisTotalAmount>
        <ram:TaxTotalAmount currencyID="$currency">$vat</ram:TaxTotalAmount>
        <ram:GrandTotalAmount>$total</ram:GrandTotalAmount>
        <ram:TotalPrepaidAmount>$prepaid</ram:TotalPrepaidAmount>
        <ram:DuePayableAmount>$total_due</ram:DuePayableAmount>
      </ram:SpecifiedTradeSettlementHeaderMonetarySummation>
    </ram:ApplicableHeaderTradeSettlement>
  </rsm:SupplyChainTradeTransaction>
</rsm:CrossIndustryInvoice>
""")
_LINE: Final = Template("""\
    <ram:IncludedSupplyChainTradeLineItem>
      <ram:AssociatedDocumentLineDocument>
        <ram:LineID>$position</ram:LineID>
      </ram:AssociatedDocumentLineDocument>
      <ram:SpecifiedTradeProduct>
        <ram:Name>$text</ram:Name>
      </ram:SpecifiedTradeProduct>
      <ram:SpecifiedLineTradeAgreement>
        <ram:NetPriceProductTradePrice>
          <ram:ChargeAmount>$price</ram:ChargeAmount>
        </ram:NetPriceProductTradePrice>
      </ram:SpecifiedLineTradeAgreement>
      <ram:SpecifiedLineTradeDelivery>
        <ram:BilledQuantity unitCode="C62">$quantity</ram:BilledQuantity>
      </ram:SpecifiedLineTradeDelivery>
      <ram:SpecifiedLineTradeSettlement>
        <ram:ApplicableTradeTax>
          <ram:TypeCode>VAT</ram:TypeCode>
          <ram:CategoryCode>S</ram:CategoryCode>
          <ram:RateApplicablePercent>$percent</ram:RateApplicablePercent>
        </ram:ApplicableTradeTax>
        <ram:SpecifiedTradeSettlementLineMonetarySummation>
          <ram:LineTotalAmount>$amount</ram:LineTotalAmount>
        </ram:SpecifiedTradeSettlementLineMonetarySummation>
      </ram:SpecifiedLineTradeSettlement>
    </ram:IncludedSupplyChainTradeLineItem>
""")


def cross_industry_invoice(bill: Bill) -> bytes:
    """The bill in the EN 16931 profile of Factur-X."""
    lines = (_line(bill, line, position) for position, line in enumerate(bill.lines, start=1))
    values = {
        "number": bill.number,
        "issued": bill.issued.replace("-", ""),
        "due": bill.due.replace("-", ""),
        "seller": bill.seller[0],
        "street": bill.seller[1],
        "email": bill.email,
        "buyer": bill.buyer[0],
        "currency": bill.currency,
        "iban": bill.iban.replace(" ", ""),
        "percent": str(bill.vat_percent),
        "net": str(bill.net),
        "vat": str(bill.vat),
        "total": str(bill.total),
        "prepaid": str(bill.prepaid),
        "total_due": str(bill.total_due),
        "note": bill.note or _THANKS,
    }
    escaped = {name: escape(value) for name, value in values.items()}
    return _INVOICE.substitute(escaped, lines="".join(lines)).encode()


def _line(bill: Bill, line: Line, position: int) -> str:
    return _LINE.substitute(
        position=position,
        text=escape(line.text),
        price=line.price,
        quantity=line.quantity,
        percent=bill.vat_percent,
        amount=line.amount,
    )
